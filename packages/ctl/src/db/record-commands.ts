import type { Commands } from '../base/declared.js';

const lookupOption = [
  '--lookup <json>',
  'Join another collection: {"from","local","foreign","as"}, or a list of these',
] as const;
const writeOptions = [
  ['--ttl <duration>', 'Time to live from now: 30m; 0 means no expiry'],
  [
    '--request-id <text>',
    'Idempotency key: repeating the write with it within 10 minutes changes nothing',
  ],
] as const;
const dataHelp = 'JSON object, @file, or - for stdin (the default)';
export const collectionArgument = ['<collection>', 'name of the collection'] as const;

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

/** Explains conditions in the help. */
export const conditionsSection = ['Conditions:', conditions] as const;

/** The commands on records; in the shell, --key is not the API key. */
export const recordCommands = (isShell: boolean): Commands => ({
  get: {
    summary: 'Read one record',
    description: 'Show the record with this key or id.',
    arguments: [collectionArgument, ['<key>', 'key of the record, or its id']],
    options: [['--fields <paths>', 'Show only these fields: name,address.city']],
    examples: [
      ['ctl db get people ada', 'by key'],
      ['ctl db get people 01J8Z3K4M5N6P7Q8R9S0T1V2W3', 'by id'],
      ['ctl db get people ada --json', 'for scripts: {"record": ...}'],
    ],
    exitCodes: { 1: 'no such record, or failure' },
    run: async () => (await import('./reads.js')).getRecord,
  },
  put: {
    summary: 'Create or replace the record with a key',
    description: 'Create or replace the record with this key, and print it.',
    arguments: [collectionArgument, ['<key>', 'key of the record'], ['[data]', dataHelp]],
    options: [
      ['--merge', 'Merge into the existing record (null removes a field) instead of replacing it'],
      ['--if-rev <number>', 'Only if the record still has this revision; 0: only if there is none'],
      ...writeOptions,
    ],
    examples: [
      [`ctl db put people ada '{"name":"Ada","age":36}'`, 'create or replace'],
      [`ctl db put people ada '{"age":37}' --merge`, 'change one field'],
      [`ctl db put people ada @ada.json --if-rev 3`, 'unless somebody else changed it first'],
    ],
    run: async () => (await import('./writes.js')).putRecord,
  },
  update: {
    summary: 'Change parts of a record with operators',
    description:
      'Apply operators to a record in one atomic step, and print it: $set, $unset, $inc, $mul, ' +
      '$min, $max, $push, $addToSet, $pull, $rename and $currentDate, each with paths and values.',
    arguments: [
      collectionArgument,
      ['<id>', 'id of the record, or its key; leave it out with --key'],
      ['[update]', 'JSON object of operators, @file, or - for stdin'],
    ],
    options: [
      ...(isShell ? ([['--key <key>', 'Key of the record']] as const) : []),
      ['--if-rev <number>', 'Only if the record still has this revision'],
      ...writeOptions,
    ],
    examples: [
      [`ctl db update people ada '{"$inc":{"visits":1}}'`, 'add to a number'],
      [
        `ctl db update people --key ada '{"$push":{"tags":"x"}}'`,
        'by key: without an id, --key is the record',
      ],
    ],
    exitCodes: { 1: 'no such record, or failure' },
    run: async () => (await import('./writes.js')).updateRecord,
  },
  insert: {
    summary: 'Insert a record',
    description: 'Insert a record and print it. With --record-key it fails if the key exists.',
    arguments: [collectionArgument, ['[data]', dataHelp]],
    options: [
      ['--record-key <key>', 'Key of the new record'],
      ['--id <ulid>', 'Id of the new record (default: generated)'],
      ['--ttl <duration>', 'Time to live: 30m; 0 means no expiry'],
      [
        '--request-id <text>',
        'Idempotency key: repeating the insert with it within 10 minutes inserts nothing',
      ],
    ],
    examples: [
      [`ctl db insert people '{"name":"Ada","age":36}'`, 'with a generated id'],
      [`ctl db insert people @ada.json --record-key ada`, 'from a file, under a key'],
    ],
    run: async () => (await import('./writes.js')).insertRecord,
  },
  delete: {
    summary: 'Delete one record',
    description: 'Delete the record with this key or id, and print its last version.',
    arguments: [collectionArgument, ['<key>', 'key of the record, or its id']],
    examples: [
      ['ctl db delete people ada', 'by key'],
      ['ctl db delete people ada --json', 'for scripts: {"record": ..., "seq": ...}'],
    ],
    exitCodes: { 1: 'no such record, or failure' },
    run: async () => (await import('./writes.js')).deleteRecord,
  },
  find: {
    summary: 'Find records',
    description: 'Show the records that match all conditions, at most 100 by default.',
    arguments: [
      collectionArgument,
      ['[conditions...]', "such as 'age>30' city=Bern name^=A tags~x"],
    ],
    options: [
      ['--filter <json>', 'Condition as JSON, such as {"field":"age","op":"gt","value":30}'],
      ['--order-by <fields>', 'Sort: age,-name (a minus sorts descending)'],
      ['--limit <number>', 'Maximum number of records (default: 100)'],
      ['--cursor <text>', 'Continue after the page that ended with this cursor'],
      ['--fields <paths>', 'Show only these fields: name,address.city'],
      ['--exclude <paths>', 'Leave out these fields'],
      ['--search <text>', 'Find words, best hits first: durable "exact phrase" pre* -not'],
      ['--fuzzy', 'Also find words with one typing mistake'],
      ['--near <json>', 'Find the nearest vectors: {"field","vector","k"}, or @file'],
      lookupOption,
      ['--all', 'Show every match, however many there are'],
      ['--count', 'Only show the number of matches'],
      ['--explain', 'Also show the query plan'],
    ],
    examples: [
      ["ctl db find people 'age>30' city=Bern", 'both must match'],
      ['ctl db find people city=Bern or city=Oslo --order-by -age', 'either, oldest first'],
      ['ctl db find people --count', 'the number of matches'],
      ['ctl db find people --json', 'for scripts: {"records": [...], "next_cursor": ""}'],
    ],
    run: async () => (await import('./reads.js')).findRecords,
    section: conditionsSection,
  },
  count: {
    summary: 'Count records',
    description: 'Show the number of records of a collection that match all conditions.',
    arguments: [collectionArgument, ['[conditions...]', "such as 'age>30' city=Bern"]],
    options: [['--filter <json>', 'Condition as JSON']],
    examples: [
      ['ctl db count people', 'all records'],
      ["ctl db count people 'age>30'", 'those that match'],
    ],
    exitCodes: { 1: 'no such collection, or failure' },
    run: async () => (await import('./catalog.js')).countRecords,
    section: conditionsSection,
  },
  distinct: {
    summary: 'List the different values of a field',
    description:
      'List the different values of a field among the records that match all conditions, in ' +
      'order. An array gives its elements.',
    arguments: [
      collectionArgument,
      ['<field>', 'dotted path of the field'],
      ['[conditions...]', "such as 'age>30' city=Bern"],
    ],
    options: [['--filter <json>', 'Condition as JSON']],
    examples: [
      ['ctl db distinct people city', 'all cities'],
      ["ctl db distinct people tags 'age>30' --json", 'for scripts: {"values": [...]}'],
    ],
    exitCodes: { 1: 'no such collection, or failure' },
    run: async () => (await import('./reads.js')).distinctValues,
    section: conditionsSection,
  },
  aggregate: {
    summary: 'Group records and compute over them',
    description:
      'Group the records that match all conditions and compute aggregates for each group. ' +
      'Ops are count, sum, avg, min, max, count_distinct, first and last.',
    arguments: [collectionArgument, ['[conditions...]', "such as 'age>30' city=Bern"]],
    options: [
      ['--filter <json>', 'Condition as JSON'],
      ['--group-by <list>', 'Fields, NAME=dateTrunc(FIELD,UNIT,ZONE) or NAME=bucket(FIELD,EDGES)'],
      lookupOption,
      ['--compute <values...>', 'Aggregates: oldest=max(age) mean=avg(age)'],
      ['--having <conditions>', "Only groups that match: 'count>1 oldest>30'"],
      ['--order-by <fields>', 'Sort by group fields or aggregates: -count'],
      ['--limit <number>', 'Maximum number of groups'],
      ['--explain', 'Also show the query plan'],
    ],
    examples: [
      ['ctl db aggregate people', 'the number of records'],
      [
        "ctl db aggregate people --group-by city --compute 'oldest=max(age)'",
        'the oldest of each city',
      ],
      [
        "ctl db aggregate orders --group-by 'week=dateTrunc(at,week,Europe/Berlin)'",
        'the orders of each week',
      ],
      ['ctl db aggregate people --group-by city --json', 'for scripts: {"groups": [...]}'],
    ],
    run: async () => (await import('./reads.js')).aggregateRecords,
    section: conditionsSection,
  },
  watch: {
    summary: 'Follow changes as they are committed',
    description:
      'Print every change of a collection, or of the whole database, until Ctrl-C. After a ' +
      'lost connection it resumes where it was, without gap or duplicate.',
    arguments: [
      ['[collection]', 'name of the collection'],
      ['[conditions...]', 'only changes of records that match, before or after'],
    ],
    options: [
      ['--database', 'Watch the whole database, which needs admin access'],
      ['--filter <json>', 'Condition as JSON'],
      ['--initial', 'First print the existing records'],
      ['--before', 'Also print each record before the change'],
      ['--resume <token>', 'Resume after the message with this resume_token'],
      ['--start-seq <number>', 'Start with this commit'],
      ['--fields <paths>', 'Show only these fields: name,address.city'],
      ['--max <number>', 'Exit after this many changes; commits are not split'],
    ],
    examples: [
      ['ctl db watch people', 'changes from now on'],
      ["ctl db watch people --initial 'age>30'", 'existing records, then changes'],
      ['ctl db watch people --json', 'for scripts: one line per commit'],
    ],
    run: async () => (await import('./watching.js')).watchRecords,
    section: conditionsSection,
  },
  tx: {
    summary: 'Run several operations in one transaction',
    description:
      'Run a list of operations in one transaction: a JSON array, or one JSON object per ' +
      'line. Each is {"op", "collection", ...}: insert {data, key?, id?, ttl?}, update and ' +
      'merge {id or key, data}, upsert {key, data, mode?}, updateIfRev {id or key, ' +
      'expected_rev, data}, delete {id or key}, get {id or key}. Update, upsert and ' +
      'updateIfRev take {update} with operators in place of data. The transaction is ' +
      'retried if it conflicts with another commit.',
    arguments: [['[file]', 'file with the operations, or - for stdin (the default)']],
    examples: [
      ['ctl db tx transfer.json', 'from a file'],
      [
        `echo '{"op":"delete","collection":"people","key":"ada"}' | ctl db tx`,
        'from another program',
      ],
    ],
    run: async () => (await import('./operations.js')).runOperations,
  },
});
