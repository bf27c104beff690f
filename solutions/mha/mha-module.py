"""Versions of the module MultiHeadAttention: the reference, other right ways and known wrong ones.

nn.Linear keeps (out, in) weights; nn.MultiheadAttention keeps q, k and v below one another in `in_proj_weight`
(3D, D) and `in_proj_bias` (3D,), and `out_proj` as a Linear. Helpers with an underscore are shared.
"""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn


def _weights(scores):
    """Softmax over the last axis, written out."""
    raised = torch.exp(scores - scores.amax(-1, keepdim=True).detach())
    return raised / raised.sum(-1, keepdim=True)


def _future(seq, device):
    return torch.ones(seq, seq, dtype=torch.bool, device=device).triu(1)


def _attend(q, k, v, causal):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(_future(scores.shape[-1], scores.device), -math.inf)
    return _weights(scores) @ v


def _split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def _merge(heads):
    return heads.transpose(1, 2).flatten(2)


def _check(d_model, num_heads):
    if d_model % num_heads:
        raise ValueError(f"d_model {d_model} is not divisible by num_heads {num_heads}")


class reference(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model {d_model} is not divisible by num_heads {num_heads}")
        self.num_heads = num_heads
        self.d_head = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x, causal=False):
        batch, seq, d_model = x.shape
        q, k, v = (
            layer(x).view(batch, seq, self.num_heads, self.d_head).transpose(1, 2)  # (B, H, S, d)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if causal:
            future = torch.ones(seq, seq, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(future, -math.inf)
        heads = _weights(scores) @ v
        return self.out_proj(heads.transpose(1, 2).reshape(batch, seq, d_model))

    @torch.no_grad()
    def load_torch(self, mha):
        inputs = (self.q_proj, self.k_proj, self.v_proj)
        for layer, weight in zip(inputs, mha.in_proj_weight.chunk(3), strict=True):
            layer.weight.copy_(weight)
        self.out_proj.weight.copy_(mha.out_proj.weight)
        if mha.in_proj_bias is not None:
            for layer, bias in zip(inputs, mha.in_proj_bias.chunk(3), strict=True):
                layer.bias.copy_(bias)
            self.out_proj.bias.copy_(mha.out_proj.bias)


# --- right ------------------------------------------------------------------------------------------------


class right_fused_linear(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        _check(d_model, num_heads)
        self.heads = num_heads
        self.c_attn = nn.Linear(d_model, 3 * d_model, bias)
        self.c_proj = nn.Linear(d_model, d_model, bias)

    def forward(self, x, causal=False):
        q, k, v = (_split(part, self.heads) for part in self.c_attn(x).chunk(3, dim=-1))
        return self.c_proj(_merge(_attend(q, k, v, causal)))

    def load_torch(self, mha):
        with torch.no_grad():
            self.c_attn.weight.copy_(mha.in_proj_weight)
            self.c_proj.weight.copy_(mha.out_proj.weight)
            if self.c_attn.bias is not None:
                self.c_attn.bias.copy_(mha.in_proj_bias)
                self.c_proj.bias.copy_(mha.out_proj.bias)
        return self


class right_parameters_in_out(nn.Module):
    """Raw parameters, (in, out), with torch.empty for a start; new ones on loading."""

    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        _check(d_model, num_heads)
        self.num_heads = num_heads
        for name in ("q", "k", "v", "o"):
            setattr(self, f"w_{name}", nn.Parameter(torch.empty(d_model, d_model)))
            self.register_parameter(f"b_{name}", nn.Parameter(torch.zeros(d_model)) if bias else None)

    def _project(self, x, name):
        out = x @ getattr(self, f"w_{name}")
        bias = getattr(self, f"b_{name}")
        return out if bias is None else out + bias

    def forward(self, x, causal=False):
        q, k, v = (_split(self._project(x, name), self.num_heads) for name in "qkv")
        return self._project(_merge(_attend(q, k, v, causal)), "o")

    def load_torch(self, mha):
        weights = [*mha.in_proj_weight.detach().chunk(3), mha.out_proj.weight.detach()]
        for name, weight in zip("qkvo", weights, strict=True):
            setattr(self, f"w_{name}", nn.Parameter(weight.T.clone()))
        if mha.in_proj_bias is None:
            return
        biases = [*mha.in_proj_bias.detach().chunk(3), mha.out_proj.bias.detach()]
        for name, bias in zip("qkvo", biases, strict=True):
            setattr(self, f"b_{name}", nn.Parameter(bias.clone()))


class right_einsum_per_head(nn.Module):
    """Weights (3, H, D, d) and (H, d, D); the heads are summed, never merged."""

    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        _check(d_model, num_heads)
        d_head = d_model // num_heads
        self.inward = nn.Parameter(torch.randn(3, num_heads, d_model, d_head))
        self.outward = nn.Parameter(torch.randn(num_heads, d_head, d_model))
        self.inward_bias = nn.Parameter(torch.zeros(3, num_heads, 1, d_head)) if bias else None
        self.outward_bias = nn.Parameter(torch.zeros(d_model)) if bias else None

    def forward(self, x, causal=False):
        qkv = torch.einsum("bsm,thmd->tbhsd", x, self.inward)
        if self.inward_bias is not None:
            qkv = qkv + self.inward_bias.unsqueeze(1)
        out = torch.einsum("bhsd,hdm->bsm", _attend(*qkv, causal), self.outward)
        return out if self.outward_bias is None else out + self.outward_bias

    @torch.no_grad()
    def load_torch(self, mha):
        from einops import rearrange

        heads = self.inward.shape[1]
        self.inward.copy_(rearrange(mha.in_proj_weight, "(t h d) m -> t h m d", t=3, h=heads))
        self.outward.copy_(rearrange(mha.out_proj.weight, "m (h d) -> h d m", h=heads))
        if self.inward_bias is not None:
            self.inward_bias.copy_(rearrange(mha.in_proj_bias, "(t h d) -> t h 1 d", t=3, h=heads))
            self.outward_bias.copy_(mha.out_proj.bias)
        return {"loaded": True}


class right_head_major_fused(nn.Module):
    """One projection whose rows go head by head, [q, k, v] each; the loader re-orders."""

    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        _check(d_model, num_heads)
        self.n = num_heads
        self.query_key_value = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.dense = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, hidden_states, causal=False):
        q, k, v = self.query_key_value(hidden_states).unflatten(-1, (self.n, -1)).transpose(1, 2).chunk(3, -1)
        return self.dense(_attend(q, k, v, causal).permute(0, 2, 1, 3).reshape(hidden_states.shape))

    @torch.no_grad()
    def load_torch(self, mha):
        from einops import rearrange

        self.query_key_value.weight.copy_(
            rearrange(mha.in_proj_weight, "(t h d) m -> (h t d) m", t=3, h=self.n)
        )
        if mha.in_proj_bias is not None:
            self.query_key_value.bias.copy_(rearrange(mha.in_proj_bias, "(t h d) -> (h t d)", t=3, h=self.n))
        self.dense.load_state_dict(mha.out_proj.state_dict())


class right_list_of_heads(nn.Module):
    """A module for each head, in a ModuleList."""

    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        _check(d_model, num_heads)
        d_head = d_model // num_heads
        self.heads = nn.ModuleList(
            nn.ModuleDict({name: nn.Linear(d_model, d_head, bias=bias) for name in "qkv"})
            for _ in range(num_heads)
        )
        self.out = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x, causal=False):
        return self.out(
            torch.cat([_attend(*(h[name](x) for name in "qkv"), causal) for h in self.heads], dim=-1)
        )

    @torch.no_grad()
    def load_torch(self, mha):
        for i, name in enumerate("qkv"):
            weights = mha.in_proj_weight.chunk(3)[i].chunk(len(self.heads))
            for head, weight in zip(self.heads, weights, strict=True):
                head[name].weight.copy_(weight)
            if mha.in_proj_bias is not None:
                for head, bias in zip(
                    self.heads, mha.in_proj_bias.chunk(3)[i].chunk(len(self.heads)), strict=True
                ):
                    head[name].bias.copy_(bias)
        self.out = copy.deepcopy(mha.out_proj)


class right_library_names(nn.Module):
    """The library's own parameter names, so that its state dict fits."""

    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        _check(d_model, num_heads)
        self.num_heads = num_heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * d_model, d_model))
        self.register_parameter("in_proj_bias", nn.Parameter(torch.empty(3 * d_model)) if bias else None)
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x, causal=False):
        qkv = F.linear(x, self.in_proj_weight, self.in_proj_bias)
        q, k, v = qkv.unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4).unbind()
        return self.out_proj(_merge(_attend(q, k, v, causal)))

    def load_torch(self, mha):
        return self.load_state_dict(mha.state_dict())


class right_inherits(nn.MultiheadAttention):
    """The library's parameters by inheritance, the computation by hand."""

    def __init__(self, d_model, num_heads, bias=True):
        _check(d_model, num_heads)
        super().__init__(d_model, num_heads, bias=bias, batch_first=True)

    def forward(self, x, causal=False):
        qkv = F.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        q, k, v = (_split(part, self.num_heads) for part in qkv)
        return self.out_proj(_merge(_attend(q, k, v, causal)))

    def load_torch(self, mha):
        self.load_state_dict(copy.deepcopy(mha.state_dict()))


class right_sequence_first_inside(right_fused_linear):
    """(S, B*H, d) inside, as the library has it."""

    def forward(self, x, causal=False):
        batch, seq, width = x.shape
        rows = self.c_attn(x.transpose(0, 1))
        q, k, v = (
            part.reshape(seq, batch * self.heads, width // self.heads).transpose(0, 1)
            for part in rows.chunk(3, -1)
        )
        heads = _attend(q, k, v, causal).transpose(0, 1).reshape(seq, batch, width)
        return self.c_proj(heads).transpose(0, 1)


class right_mask_kept_by_length(right_fused_linear):
    """The mask is a buffer that grows when a longer sequence comes."""

    def __init__(self, d_model, num_heads, bias=True, max_seq=2):
        super().__init__(d_model, num_heads, bias)
        self.register_buffer("future", _future(max_seq, None), persistent=False)

    def forward(self, x, causal=False):
        seq = x.shape[1]
        if seq > self.future.shape[0]:
            self.future = _future(2 * seq, x.device)
        q, k, v = (_split(part, self.heads) for part in self.c_attn(x).split(x.shape[-1], dim=-1))
        scores = (q * q.shape[-1] ** -0.5) @ k.mT
        if causal:
            scores = scores.masked_fill(self.future[:seq, :seq], torch.finfo(x.dtype).min)
        return self.c_proj(_merge(scores.softmax(-1) @ v))


class right_scale_folded_in(reference):
    """The scale is multiplied into the query weights on loading."""

    def load_torch(self, mha):
        super().load_torch(mha)
        with torch.no_grad():
            self.q_proj.weight.mul_(self.d_head**-0.5)
            if self.q_proj.bias is not None:
                self.q_proj.bias.mul_(self.d_head**-0.5)

    def forward(self, x, causal=False):
        q, k, v = (_split(layer(x), self.num_heads) for layer in (self.q_proj, self.k_proj, self.v_proj))
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
        if causal:
            scores = scores + torch.full(scores.shape[-2:], -math.inf, dtype=x.dtype, device=x.device).triu(1)
        return self.out_proj(_merge(F.softmax(scores, dim=-1) @ v))


class right_with_dropout(nn.Module):
    """Keyword-only extras; dropout only while training; weights through `.data`."""

    def __init__(self, dim, heads, bias=True, *, dropout=0.1, scale=None):
        super().__init__()
        if dim % heads != 0:
            raise ValueError("dim must be a multiple of heads")
        self.heads, self.scale, self.p = heads, scale or (dim // heads) ** -0.5, dropout
        self.layers = nn.ParameterDict({name: torch.zeros(dim, dim) for name in "qkvo"})
        self.biases = nn.ParameterDict({name: torch.zeros(dim) for name in "qkvo"} if bias else {})

    def _linear(self, name, x):
        return F.linear(x, self.layers[name], self.biases[name] if name in self.biases else None)

    def forward(self, x, causal=False):
        from einops import rearrange

        q, k, v = (rearrange(self._linear(name, x), "b s (h d) -> b h s d", h=self.heads) for name in "qkv")
        scores = torch.matmul(q, k.mT) * self.scale
        scores = torch.where(_future(x.size(1), x.device), -math.inf, scores) if causal else scores
        weights = F.dropout(torch.softmax(scores, -1, dtype=torch.float32).type_as(v), self.p, self.training)
        return self._linear("o", rearrange(weights @ v, "b h s d -> b s (h d)"))

    def load_torch(self, mha):
        for i, name in enumerate("qkv"):
            self.layers[name].data = mha.in_proj_weight.data.chunk(3)[i].clone()
            if self.biases:
                self.biases[name].data = mha.in_proj_bias.data.chunk(3)[i].clone()
        self.layers["o"].data.copy_(mha.out_proj.weight.data)
        if self.biases:
            self.biases["o"].data.copy_(mha.out_proj.bias.data)


# --- wrong: loading -----------------------------------------------------------------------------------------


def _load(module, mha, order=(0, 1, 2), input_weight=lambda w: w, output_weight=lambda w: w):
    """Loads reference's layers with one thing changed."""
    with torch.no_grad():
        for layer, i in zip((module.q_proj, module.k_proj, module.v_proj), order, strict=True):
            layer.weight.copy_(input_weight(mha.in_proj_weight.chunk(3)[i]))
            if layer.bias is not None:
                layer.bias.copy_(mha.in_proj_bias.chunk(3)[i])
        module.out_proj.weight.copy_(output_weight(mha.out_proj.weight))
        if module.out_proj.bias is not None:
            module.out_proj.bias.copy_(mha.out_proj.bias)


class wrong_references_kept(right_library_names):
    def load_torch(self, mha):
        self.in_proj_weight = mha.in_proj_weight
        self.out_proj = mha.out_proj
        if mha.in_proj_bias is not None:
            self.in_proj_bias = mha.in_proj_bias


class wrong_references_kept__data(reference):
    def load_torch(self, mha):
        for i, layer in enumerate((self.q_proj, self.k_proj, self.v_proj)):
            layer.weight.data = mha.in_proj_weight.data.chunk(3)[i]
            if layer.bias is not None:
                layer.bias.data = mha.in_proj_bias.data.chunk(3)[i]
        self.out_proj.weight.data = mha.out_proj.weight.data
        if self.out_proj.bias is not None:
            self.out_proj.bias.data = mha.out_proj.bias.data


class wrong_references_kept__weights_by_data(right_library_names):
    def load_torch(self, mha):
        self.in_proj_weight.data = mha.in_proj_weight.data
        self.out_proj.weight.data = mha.out_proj.weight.data
        if mha.in_proj_bias is not None:
            self.in_proj_bias.data.copy_(mha.in_proj_bias)
            self.out_proj.bias.data.copy_(mha.out_proj.bias)


class wrong_references_kept__on_first_use(right_library_names):
    def load_torch(self, mha):
        self.state = mha.state_dict()

    def forward(self, x, causal=False):
        self.load_state_dict(self.state)
        return super().forward(x, causal)


def _forget_biases(*layers):
    for layer in layers:
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


class wrong_biases_forgotten(reference):
    def load_torch(self, mha):
        _load(self, mha)
        _forget_biases(self.q_proj, self.k_proj, self.v_proj, self.out_proj)


class wrong_input_biases_forgotten(reference):
    def load_torch(self, mha):
        _load(self, mha)
        _forget_biases(self.q_proj, self.k_proj, self.v_proj)


class wrong_output_bias_forgotten(reference):
    def load_torch(self, mha):
        _load(self, mha)
        _forget_biases(self.out_proj)


class wrong_output_weight_transposed(reference):
    def load_torch(self, mha):
        _load(self, mha, output_weight=lambda w: w.T)


class wrong_input_weights_transposed(reference):
    def load_torch(self, mha):
        _load(self, mha, input_weight=lambda w: w.T)


class wrong_all_weights_transposed(reference):
    def load_torch(self, mha):
        _load(self, mha, input_weight=lambda w: w.T, output_weight=lambda w: w.T)


class wrong_queries_and_keys_swapped(reference):
    def load_torch(self, mha):
        _load(self, mha, order=(1, 0, 2))


class wrong_keys_and_values_swapped(reference):
    def load_torch(self, mha):
        _load(self, mha, order=(0, 2, 1))


class wrong_rows_read_head_by_head(right_head_major_fused):
    def load_torch(self, mha):
        with torch.no_grad():
            self.query_key_value.weight.copy_(mha.in_proj_weight)
            if mha.in_proj_bias is not None:
                self.query_key_value.bias.copy_(mha.in_proj_bias)
        self.dense.load_state_dict(mha.out_proj.state_dict())


class wrong_bias_expected(reference):
    def load_torch(self, mha):
        with torch.no_grad():
            for i, layer in enumerate((self.q_proj, self.k_proj, self.v_proj)):
                layer.weight.copy_(mha.in_proj_weight.chunk(3)[i])
                layer.bias.copy_(mha.in_proj_bias.chunk(3)[i])
            self.out_proj.weight.copy_(mha.out_proj.weight)
            self.out_proj.bias.copy_(mha.out_proj.bias)


class wrong_loaded_weights_frozen(right_library_names):
    def load_torch(self, mha):
        self.load_state_dict(mha.state_dict())
        self.in_proj_weight = nn.Parameter(mha.in_proj_weight.detach().clone(), requires_grad=False)


class wrong_follows_batch_first(reference):
    def load_torch(self, mha):
        _load(self, mha)
        self.batch_first = mha.batch_first

    def forward(self, x, causal=False):
        if self.batch_first:
            return super().forward(x, causal)
        return super().forward(x.transpose(0, 1), causal).transpose(0, 1)


# --- wrong: parameters ------------------------------------------------------------------------------------------


class wrong_bias_flag_ignored(reference):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__(d_model, num_heads, True)

    def load_torch(self, mha):
        if mha.in_proj_bias is not None:
            return _load(self, mha)
        with torch.no_grad():
            for i, layer in enumerate((self.q_proj, self.k_proj, self.v_proj)):
                layer.weight.copy_(mha.in_proj_weight.chunk(3)[i])
            self.out_proj.weight.copy_(mha.out_proj.weight)
        return _forget_biases(self.q_proj, self.k_proj, self.v_proj, self.out_proj)


class wrong_output_bias_always(right_library_names):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__(d_model, num_heads, bias)
        self.out_proj = nn.Linear(d_model, d_model)

    def load_torch(self, mha):
        nn.init.zeros_(self.out_proj.bias)
        self.load_state_dict(mha.state_dict(), strict=False)


class wrong_no_bias_by_default(right_library_names):
    def __init__(self, d_model, num_heads, bias=False):
        super().__init__(d_model, num_heads, bias)

    def load_torch(self, mha):
        self.load_state_dict(mha.state_dict(), strict=False)


class wrong_key_bias_missing(reference):
    """The key bias shifts every score of a row alike, so the outputs are right."""

    def __init__(self, d_model, num_heads, bias=True):
        super().__init__(d_model, num_heads, bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=False)

    def load_torch(self, mha):
        _load(self, mha)


class wrong_tensors_not_registered(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        _check(d_model, num_heads)
        self.num_heads = num_heads
        self.inward, self.outward = torch.randn(3 * d_model, d_model), torch.randn(d_model, d_model)
        self.inward_bias = self.outward_bias = None

    def forward(self, x, causal=False):
        q, k, v = (_split(p, self.num_heads) for p in F.linear(x, self.inward, self.inward_bias).chunk(3, -1))
        return F.linear(_merge(_attend(q, k, v, causal)), self.outward, self.outward_bias)

    def load_torch(self, mha):
        self.inward, self.outward = mha.in_proj_weight.detach().clone(), mha.out_proj.weight.detach().clone()
        if mha.in_proj_bias is not None:
            self.inward_bias = mha.in_proj_bias.detach().clone()
            self.outward_bias = mha.out_proj.bias.detach().clone()


class wrong_tensors_not_registered__buffers(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        _check(d_model, num_heads)
        self.num_heads = num_heads
        self.register_buffer("weights", torch.randn(4, d_model, d_model))
        self.register_buffer("biases", torch.zeros(4, d_model))

    def forward(self, x, causal=False):
        q, k, v = (_split(F.linear(x, self.weights[i], self.biases[i]), self.num_heads) for i in range(3))
        return F.linear(_merge(_attend(q, k, v, causal)), self.weights[3], self.biases[3])

    def load_torch(self, mha):
        with torch.no_grad():
            self.weights.flatten(0, 1).copy_(torch.cat([mha.in_proj_weight, mha.out_proj.weight]))
            if mha.in_proj_bias is not None:
                self.biases.flatten().copy_(torch.cat([mha.in_proj_bias, mha.out_proj.bias]))


class wrong_layers_in_a_plain_list(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        _check(d_model, num_heads)
        self.num_heads = num_heads
        self.inputs = [nn.Linear(d_model, d_model, bias=bias) for _ in range(3)]
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x, causal=False):
        q, k, v = (_split(layer(x), self.num_heads) for layer in self.inputs)
        return self.out_proj(_merge(_attend(q, k, v, causal)))

    def load_torch(self, mha):
        for i, layer in enumerate(self.inputs):
            layer.weight = nn.Parameter(mha.in_proj_weight.detach().chunk(3)[i].clone())
            if layer.bias is not None:
                layer.bias = nn.Parameter(mha.in_proj_bias.detach().chunk(3)[i].clone())
        self.out_proj.load_state_dict(mha.out_proj.state_dict())


class wrong_output_projection_missing(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        _check(d_model, num_heads)
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=bias)

    def forward(self, x, causal=False):
        return _merge(_attend(*(_split(part, self.num_heads) for part in self.qkv(x).chunk(3, -1)), causal))

    @torch.no_grad()
    def load_torch(self, mha):
        self.qkv.weight.copy_(mha.in_proj_weight)
        if mha.in_proj_bias is not None:
            self.qkv.bias.copy_(mha.in_proj_bias)


# --- wrong: the computation -------------------------------------------------------------------------------------


class _Changed(reference):
    """reference with a step of the computation exchanged."""

    def split(self, x):
        return _split(x, self.num_heads)

    def scale(self):
        return self.d_head**-0.5

    def masked(self, scores, causal):
        return scores.masked_fill(_future(scores.shape[-1], scores.device), -math.inf) if causal else scores

    def softmax(self, scores):
        return _weights(scores)

    def merge(self, heads):
        return _merge(heads)

    def forward(self, x, causal=False):
        q, k, v = (self.split(layer(x)) for layer in (self.q_proj, self.k_proj, self.v_proj))
        weights = self.softmax(self.masked(q @ k.mT * self.scale(), causal))
        return self.out_proj(self.merge(weights @ v))


class wrong_viewed_straight(_Changed):
    def split(self, x):
        return x.view(x.shape[0], self.num_heads, x.shape[1], self.d_head)


class wrong_merged_without_transpose(_Changed):
    def merge(self, heads):
        return heads.reshape(heads.shape[0], heads.shape[2], -1)


class wrong_viewed_straight_both_ways(_Changed):
    def split(self, x):
        return x.view(x.shape[0], self.num_heads, x.shape[1], self.d_head)

    def merge(self, heads):
        return heads.reshape(heads.shape[0], heads.shape[2], -1)


class wrong_heads_interleaved(_Changed):
    def split(self, x):
        from einops import rearrange

        return rearrange(x, "b s (d h) -> b h s d", h=self.num_heads)

    def merge(self, heads):
        from einops import rearrange

        return rearrange(heads, "b h s d -> b s (d h)")


class wrong_unscaled(_Changed):
    def scale(self):
        return 1.0


class wrong_scaled_by_d_model(_Changed):
    def scale(self):
        return self.q_proj.in_features**-0.5


class wrong_softmax_over_queries(_Changed):
    def softmax(self, scores):
        return scores.softmax(-2)


class wrong_softmax_over_heads(_Changed):
    def softmax(self, scores):
        return torch.nan_to_num(scores.softmax(1))


class wrong_mask_forgotten(_Changed):
    def masked(self, scores, causal):
        return scores


class wrong_causal_by_default(_Changed):
    def forward(self, x, causal=True):
        return super().forward(x, causal)


class wrong_mask_upside_down(_Changed):
    def masked(self, scores, causal):
        keep = _future(scores.shape[-1], scores.device)
        return scores.masked_fill(~keep, torch.finfo(scores.dtype).min) if causal else scores


class wrong_mask_kept_for_one_length(_Changed):
    mask = None

    def masked(self, scores, causal):
        if not causal:
            return scores
        if self.mask is None:
            self.mask = _future(scores.shape[-1], scores.device)
        return scores.masked_fill(self.mask, -math.inf)


class wrong_mask_kept_for_one_length__sliced(_Changed):
    # Shorter sequences are served by a corner of the first mask; a longer one is not.
    mask = None

    def masked(self, scores, causal):
        if not causal:
            return scores
        if self.mask is None:
            self.mask = _future(scores.shape[-1], scores.device)
        seq = scores.shape[-1]
        return scores.masked_fill(self.mask[:seq, :seq], -math.inf)


class wrong_mask_dropped_for_other_lengths(_Changed):
    mask = None

    def masked(self, scores, causal):
        if not causal:
            return scores
        if self.mask is None:
            self.mask = _future(scores.shape[-1], scores.device)
        return scores.masked_fill(self.mask, -math.inf) if self.mask.shape == scores.shape[-2:] else scores


class wrong_weights_detached(_Changed):
    def softmax(self, scores):
        return _weights(scores).detach()


# --- wrong: beside the numbers ------------------------------------------------------------------------------------


class wrong_library_attention(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        _check(d_model, num_heads)
        self.inner = nn.MultiheadAttention(d_model, num_heads, bias=bias, batch_first=True)

    def forward(self, x, causal=False):
        mask = _future(x.shape[1], x.device) if causal else None
        return self.inner(x, x, x, attn_mask=mask, need_weights=False)[0]

    def load_torch(self, mha):
        self.inner.load_state_dict(mha.state_dict())


class wrong_library_attention__kernel(right_fused_linear):
    def forward(self, x, causal=False):
        q, k, v = (_split(part, self.heads) for part in self.c_attn(x).chunk(3, dim=-1))
        return self.c_proj(_merge(F.scaled_dot_product_attention(q, k, v, is_causal=causal)))


class wrong_library_attention__behind_try(right_fused_linear):
    def forward(self, x, causal=False):
        q, k, v = (_split(part, self.heads) for part in self.c_attn(x).chunk(3, dim=-1))
        try:
            heads = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        except RuntimeError:
            heads = _attend(q, k, v, causal)
        return self.c_proj(_merge(heads))


class _Unchecked(right_fused_linear):
    def __init__(self, d_model, num_heads, bias=True):
        nn.Module.__init__(self)
        self.heads, self.d_head = num_heads, d_model // num_heads
        self.c_attn = nn.Linear(d_model, 3 * d_model, bias)
        self.c_proj = nn.Linear(d_model, d_model, bias)


class wrong_division_not_checked(_Unchecked):
    pass


class wrong_division_not_checked__asserted(_Unchecked):
    def __init__(self, d_model, num_heads, bias=True):
        assert d_model % num_heads == 0
        super().__init__(d_model, num_heads, bias)


class wrong_division_not_checked__only_in_forward(_Unchecked):
    def forward(self, x, causal=False):
        _check(x.shape[-1], self.heads)
        return super().forward(x, causal)


class wrong_result_in_float32(_Changed):
    def forward(self, x, causal=False):
        return super().forward(x, causal).float()
