# nothing yet


