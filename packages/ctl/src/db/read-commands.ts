import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
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
    .description('Shows the record with this key, or with this id.')
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
        import('./arguments.js'),
      ]);
      const ask = { collection, name, fields: listOf(flags.fields) };
      await withDatabase(tools, flags, (database) => getRecord(database, ask, tools));
    },
  );
}

export function addFind(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('find')
    .summary('Find records')
    .description('Shows the records that meet all conditions: 100 of them, unless told otherwise.')
    .argument('<collection>', 'name of the collection')
    .argument('[conditions...]', "such as 'age>30' city=Bern name^=A tags~x")
    .option('--filter <json>', 'Condition as JSON, such as {"field":"age","op":"gt","value":30}')
    .option('--order-by <fields>', 'Sort: age,-name (a minus turns the order round)')
    .option('--limit <number>', 'How many records at most (default: 100)')
    .option('--cursor <text>', 'Go on after the page that ended with this cursor')
    .option('--fields <paths>', 'Show only these fields: name,address.city')
    .option('--all', 'Show every match, however many there are')
    .option('--count', 'Only tell how many match')
    .option('--explain', 'Also tell how the query was carried out')
    .example("ctl db find people 'age>30' city=Bern", 'both must hold')
    .example(
      'ctl db find people city=Bern or city=Oslo --order-by -age',
      'either, the oldest first',
    )
    .example('ctl db find people --count', 'how many there are')
    .example('ctl db find people --json', 'for scripts: {"records": [...], "next_cursor": ""}');
  withConnection(withConditions(command), tools).action(
    async (collection: string, conditions: string[], flags: FindFlags) => {
      const [{ findRecords }, { parseOrder, listOf, wholeNumber, filterOf }] = await Promise.all([
        import('./reads.js'),
        import('./arguments.js'),
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
      'Groups the records that meet all conditions and computes over each group. Ops are count, ' +
        'sum, avg, min, max, count_distinct, first and last.',
    )
    .argument('<collection>', 'name of the collection')
    .argument('[conditions...]', "such as 'age>30' city=Bern")
    .option('--filter <json>', 'Condition as JSON')
    .option('--group-by <paths>', 'Fields whose values make a group: city,team')
    .option('--compute <values...>', 'What to compute: oldest=max(age) mean=avg(age)')
    .option('--having <conditions>', "Only groups that meet these: 'count>1 oldest>30'")
    .option('--order-by <fields>', 'Sort by group fields or computed names: -count')
    .option('--limit <number>', 'How many groups at most')
    .option('--explain', 'Also tell how it was carried out')
    .example('ctl db aggregate people', 'how many there are')
    .example(
      "ctl db aggregate people --group-by city --compute 'oldest=max(age)'",
      'the oldest of each city',
    )
    .example('ctl db aggregate people --group-by city --json', 'for scripts: {"groups": [...]}');
  withConnection(withConditions(command), tools).action(
    async (collection: string, conditions: string[], flags: AggregateFlags) => {
      const [{ aggregateRecords }, { parseOrder, listOf, wholeNumber, filterOf }] =
        await Promise.all([import('./reads.js'), import('./arguments.js')]);
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
      'Shows every change of a collection, or of the whole database, until Ctrl-C. After a cut ' +
        'connection it goes on where it was, without gap or duplicate.',
    )
    .argument('[collection]', 'name of the collection')
    .argument('[conditions...]', 'only changes of records that meet these, before or after')
    .option('--database', 'Watch the whole database, which needs admin access')
    .option('--filter <json>', 'Condition as JSON')
    .option('--initial', 'First show the records that are there')
    .option('--before', 'Also show each record as it was')
    .option('--resume <token>', 'Go on after the message with this resume_token')
    .option('--start-seq <number>', 'Begin with this commit')
    .option('--fields <paths>', 'Show only these fields: name,address.city')
    .option('--max <number>', 'End after this many changes; a commit is shown whole')
    .example('ctl db watch people', 'what happens from now on')
    .example("ctl db watch people --initial 'age>30'", 'what is there, then what happens')
    .example('ctl db watch people --json', 'for scripts: a line for each commit');
  withConnection(withConditions(command), tools).action(
    async (collection: string | undefined, conditions: string[], flags: WatchFlags) => {
      const [{ watchRecords }, { listOf, wholeNumber, filterOf }] = await Promise.all([
        import('./watching.js'),
        import('./arguments.js'),
      ]);
      const ask = {
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
      await withDatabase(tools, flags, (database) => watchRecords(database, ask, tools));
    },
  );
}
