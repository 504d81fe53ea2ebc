"""Tools for who works on powersum."""
