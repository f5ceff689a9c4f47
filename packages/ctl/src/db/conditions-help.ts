import type { CtlCommand } from '../command.js';

/** What help says of conditions. Apart from their parser, because help must be quick. */
const conditions = [
  ['age=36', 'equal; age!=36 is not'],
  ["'age>30'", 'greater; also >= < <= (quoted, or the shell takes > for itself)'],
  ['city=Bern,Oslo', 'any of these; city!=Bern,Oslo is none of them'],
  ['age=20..30', 'between, both included'],
  ['name^=A', 'begins with'],
  ['tags~x', 'contains: a part of a text or an element of a list; tags!~x does not'],
  ["'name=~^A.a$'", 'matches a regular expression'],
  ["'email?'", 'is there; email!? is not'],
  ['address.city=Bern', 'a path; $id $key $rev $created_at $updated_at are the own fields'],
  ['\'zip="8001"\'', 'a text, where 8001 would be a number; true, false and null are themselves'],
  ['a=1 or b=2', 'either; otherwise all must hold. not and ( ) work as well'],
] as const;

export function withConditions(command: CtlCommand): CtlCommand {
  return command.section('Conditions:', conditions);
}
