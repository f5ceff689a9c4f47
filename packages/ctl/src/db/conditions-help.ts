/** What `--help` says of conditions. Apart from the parser, because help must be quick. */
export const conditionsHelp =
  'Conditions are a field, an operator and a value: age=36, age!=36, age>30 (also >=, <, <=; quote ' +
  'them, or the shell takes > for itself), city=Bern,Oslo (any of them), age=20..30 (both ' +
  'included), name^=A (begins with), tags~x (a part of a text, or an element of a list; !~ is not), ' +
  'name=~^A.a$ (regular expression), email? (is there; email!? is not). A value is a number, true, ' +
  'false, null or else a text; zip="8001" is a text, too. All must hold, unless or stands between ' +
  'them; not and ( ) work as well.';
