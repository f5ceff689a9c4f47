import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { withConditions } from './conditions-help.js';
import { withConnection, withDatabase, type ConnectionFlags } from './connection.js';

interface FindFlags extends ConnectionFlags {
  filter?: string;
  orderBy?: string;
  limit?: string;
  cursor?: string;
  fields?: string;
  all?: boolean;
  count?: boolean;
  explain?: boolean;
}

interface AggregateFlags extends ConnectionFlags {
  filter?: string;
  groupBy?: string;
  compute?: string[];
  having?: string;
  orderBy?: string;
  limit?: string;
  explain?: boolean;
}

export function addGet(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('get')
    .summary('Read one record')
    .description('Show the record with this key or id.')
    .argument('<collection>', 'name of the collection')
    .argument('<key>', 'key of the record, or its id')
    .option('--fields <paths>', 'Show only these fields: name,address.city')
    .example('ctl db get people ada', 'by key')
    .example('ctl db get people 01J8Z3K4M5N6P7Q8R9S0T1V2W3', 'by id')
    .example('ctl db get people ada --json', 'for scripts: {"record": ...}')
    .exitCode(1, 'no such record, or failure');
  withConnection(command, tools).action(
    async (collection: string, name: string, flags: ConnectionFlags & { fields?: string }) => {
      const [{ getRecord }, { listOf }] = await Promise.all([
        import('./reads.js'),
        import('../base/arguments.js'),
      ]);
      const options = { collection, name, fields: listOf(flags.fields) };
      await withDatabase(tools, flags, (database) => getRecord(database, options, tools));
    },
  );
}

export function addFind(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('find')
    .summary('Find records')
    .description('Show the records that match all conditions, at most 100 by default.')
    .argument('<collection>', 'name of the collection')
    .argument('[conditions...]', "such as 'age>30' city=Bern name^=A tags~x")
    .option('--filter <json>', 'Condition as JSON, such as {"field":"age","op":"gt","value":30}')
    .option('--order-by <fields>', 'Sort: age,-name (a minus sorts descending)')
    .option('--limit <number>', 'Maximum number of records (default: 100)')
    .option('--cursor <text>', 'Continue after the page that ended with this cursor')
    .option('--fields <paths>', 'Show only these fields: name,address.city')
    .option('--all', 'Show every match, however many there are')
    .option('--count', 'Only show the number of matches')
    .option('--explain', 'Also show the query plan')
    .example("ctl db find people 'age>30' city=Bern", 'both must match')
    .example('ctl db find people city=Bern or city=Oslo --order-by -age', 'either, oldest first')
    .example('ctl db find people --count', 'the number of matches')
    .example('ctl db find people --json', 'for scripts: {"records": [...], "next_cursor": ""}');
  withConnection(withConditions(command), tools).action(
    async (collection: string, conditions: string[], flags: FindFlags) => {
      const [{ findRecords }, { parseOrder, listOf, wholeNumber, filterOf }] = await Promise.all([
        import('./reads.js'),
        import('../base/arguments.js'),
      ]);
      const query = {
        collection,
        filter: filterOf(conditions, flags.filter),
        orderBy: parseOrder(flags.orderBy),
        fields: listOf(flags.fields),
        limit: wholeNumber(flags.limit, '--limit'),
        cursor: flags.cursor,
        all: flags.all ?? false,
        count: flags.count ?? false,
        explain: flags.explain ?? false,
      };
      await withDatabase(tools, flags, (database) => findRecords(database, query, tools));
    },
  );
}

export function addAggregate(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('aggregate')
    .summary('Group records and compute over them')
    .description(
      'Group the records that match all conditions and compute aggregates for each group. ' +
        'Ops are count, sum, avg, min, max, count_distinct, first and last.',
    )
    .argument('<collection>', 'name of the collection')
    .argument('[conditions...]', "such as 'age>30' city=Bern")
    .option('--filter <json>', 'Condition as JSON')
    .option('--group-by <paths>', 'Fields to group by: city,team')
    .option('--compute <values...>', 'Aggregates: oldest=max(age) mean=avg(age)')
    .option('--having <conditions>', "Only groups that match: 'count>1 oldest>30'")
    .option('--order-by <fields>', 'Sort by group fields or aggregates: -count')
    .option('--limit <number>', 'Maximum number of groups')
    .option('--explain', 'Also show the query plan')
    .example('ctl db aggregate people', 'the number of records')
    .example(
      "ctl db aggregate people --group-by city --compute 'oldest=max(age)'",
      'the oldest of each city',
    )
    .example('ctl db aggregate people --group-by city --json', 'for scripts: {"groups": [...]}');
  withConnection(withConditions(command), tools).action(
    async (collection: string, conditions: string[], flags: AggregateFlags) => {
      const [{ aggregateRecords }, { parseOrder, listOf, wholeNumber, filterOf }] =
        await Promise.all([import('./reads.js'), import('../base/arguments.js')]);
      const { parseAccumulator } = await import('./aggregates.js');
      const having = flags.having?.trimStart().startsWith('{')
        ? filterOf([], flags.having, '--having')
        : filterOf(flags.having === undefined ? [] : [flags.having], undefined);
      const query = {
        collection,
        filter: filterOf(conditions, flags.filter),
        groupBy: listOf(flags.groupBy),
        aggregates: (flags.compute ?? []).map(parseAccumulator),
        having,
        orderBy: parseOrder(flags.orderBy),
        limit: wholeNumber(flags.limit, '--limit'),
        explain: flags.explain ?? false,
      };
      await withDatabase(tools, flags, (database) => aggregateRecords(database, query, tools));
    },
  );
}

interface WatchFlags extends ConnectionFlags {
  filter?: string;
  database?: boolean;
  initial?: boolean;
  before?: boolean;
  resume?: string;
  startSeq?: string;
  fields?: string;
  max?: string;
}

export function addWatch(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('watch')
    .summary('Follow changes as they are committed')
    .description(
      'Print every change of a collection, or of the whole database, until Ctrl-C. After a ' +
        'lost connection it resumes where it was, without gap or duplicate.',
    )
    .argument('[collection]', 'name of the collection')
    .argument('[conditions...]', 'only changes of records that match, before or after')
    .option('--database', 'Watch the whole database, which needs admin access')
    .option('--filter <json>', 'Condition as JSON')
    .option('--initial', 'First print the existing records')
    .option('--before', 'Also print each record before the change')
    .option('--resume <token>', 'Resume after the message with this resume_token')
    .option('--start-seq <number>', 'Start with this commit')
    .option('--fields <paths>', 'Show only these fields: name,address.city')
    .option('--max <number>', 'Exit after this many changes; commits are not split')
    .example('ctl db watch people', 'changes from now on')
    .example("ctl db watch people --initial 'age>30'", 'existing records, then changes')
    .example('ctl db watch people --json', 'for scripts: one line per commit');
  withConnection(withConditions(command), tools).action(
    async (collection: string | undefined, conditions: string[], flags: WatchFlags) => {
      const [{ watchRecords }, { listOf, wholeNumber, filterOf }] = await Promise.all([
        import('./watching.js'),
        import('../base/arguments.js'),
      ]);
      const options = {
        collection,
        database: flags.database ?? false,
        filter: filterOf(conditions, flags.filter),
        fields: listOf(flags.fields),
        includeInitial: flags.initial ?? false,
        includeBefore: flags.before ?? false,
        resumeToken: flags.resume,
        startSeq: wholeNumber(flags.startSeq, '--start-seq'),
        max: wholeNumber(flags.max, '--max'),
      };
      await withDatabase(tools, flags, (database) => watchRecords(database, options, tools));
    },
  );
}
