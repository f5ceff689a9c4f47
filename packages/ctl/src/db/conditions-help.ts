import type { CtlCommand } from '../base/command.js';

/** Help text of conditions, separate from their parser because help must load fast. */
const conditions = [
  ['age=36', 'equal; age!=36 is not'],
  ["'age>30'", 'greater; also >= < <= (quoted, because > is special in shells)'],
  ['city=Bern,Oslo', 'any of these; city!=Bern,Oslo is none of them'],
  ['age=20..30', 'between, both included'],
  ['name^=A', 'starts with'],
  ['tags~x', 'contains: part of a text or an element of a list; tags!~x does not'],
  ["'name=~^A.a$'", 'matches a regular expression'],
  ["'email?'", 'exists; email!? does not'],
  ['address.city=Bern', 'a path; $id $key $rev $created_at $updated_at are system fields'],
  ['\'zip="8001"\'', 'a text, because 8001 would be a number; true, false and null are themselves'],
  ['a=1 or b=2', 'either; otherwise all must match. not and ( ) work too'],
] as const;

export function withConditions(command: CtlCommand): CtlCommand {
  return command.section('Conditions:', conditions);
}
