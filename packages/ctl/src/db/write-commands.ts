import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import { withConnection, withDatabase, type ConnectionFlags } from './connection.js';

interface InsertFlags extends ConnectionFlags {
  recordKey?: string;
  id?: string;
  ttl?: string;
  requestId?: string;
}

interface PutFlags extends ConnectionFlags {
  merge?: boolean;
  ifRev?: string;
  ttl?: string;
  requestId?: string;
}

const dataHelp = 'JSON object, @file, or - for stdin (which is also what leaving it out means)';

export function addInsert(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('insert')
    .summary('Insert a record')
    .description('Inserts a record and shows it. With --record-key it fails if the key is taken.')
    .argument('<collection>', 'name of the collection')
    .argument('[data]', dataHelp)
    .option('--record-key <key>', 'Key of the new record')
    .option('--id <ulid>', 'Id of the new record (default: one is made)')
    .option('--ttl <duration>', 'How long it lives: 30m; 0 is for ever')
    .option(
      '--request-id <text>',
      'Repeating it with the same id within 10 minutes inserts nothing',
    )
    .example(`ctl db insert people '{"name":"Ada","age":36}'`, 'the id is made for you')
    .example(`ctl db insert people @ada.json --record-key ada`, 'from a file, under a key');
  withConnection(command, tools).action(
    async (collection: string, data: string | undefined, flags: InsertFlags) => {
      const [{ insertRecord }, { documentOf, durationOf }] = await Promise.all([
        import('./writes.js'),
        import('./arguments.js'),
      ]);
      const ask = {
        collection,
        data: await documentOf(data, tools.terminal),
        key: flags.recordKey,
        id: flags.id,
        ttlMs: durationOf(flags.ttl, '--ttl'),
        requestId: flags.requestId,
      };
      await withDatabase(tools, flags, (database) => insertRecord(database, ask, tools));
    },
  );
}

export function addPut(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('put')
    .summary('Insert or change the record with a key')
    .description('Replaces the record with this key, or makes it, and shows it.')
    .argument('<collection>', 'name of the collection')
    .argument('<key>', 'key of the record')
    .argument('[data]', dataHelp)
    .option('--merge', 'Merge into what is there (null removes a field) instead of replacing it')
    .option(
      '--if-rev <number>',
      'Only if the record still has this revision; 0: only if there is none',
    )
    .option('--ttl <duration>', 'How long it lives from now: 30m; 0 is for ever')
    .option(
      '--request-id <text>',
      'Repeating it with the same id within 10 minutes changes nothing',
    )
    .example(`ctl db put people ada '{"name":"Ada","age":36}'`, 'insert or replace')
    .example(`ctl db put people ada '{"age":37}' --merge`, 'change one field')
    .example(`ctl db put people ada @ada.json --if-rev 3`, 'unless somebody else was quicker');
  withConnection(command, tools).action(
    async (collection: string, key: string, data: string | undefined, flags: PutFlags) => {
      const [{ putRecord }, { documentOf, durationOf, wholeNumber }] = await Promise.all([
        import('./writes.js'),
        import('./arguments.js'),
      ]);
      const ask = {
        collection,
        key,
        data: await documentOf(data, tools.terminal),
        merge: flags.merge ?? false,
        ifRev: wholeNumber(flags.ifRev, '--if-rev'),
        ttlMs: durationOf(flags.ttl, '--ttl'),
        requestId: flags.requestId,
      };
      await withDatabase(tools, flags, (database) => putRecord(database, ask, tools));
    },
  );
}

export function addDelete(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('delete')
    .summary('Delete one record')
    .description('Deletes the record with this key, or with this id, and shows it as it was.')
    .argument('<collection>', 'name of the collection')
    .argument('<key>', 'key of the record, or its id')
    .example('ctl db delete people ada', 'by key')
    .example('ctl db delete people ada --json', 'for scripts: {"record": ..., "seq": ...}')
    .exitCode(1, 'no such record, or failure');
  withConnection(command, tools).action(
    async (collection: string, name: string, flags: ConnectionFlags) => {
      const { deleteRecord } = await import('./writes.js');
      await withDatabase(tools, flags, (database) =>
        deleteRecord(database, { collection, name }, tools),
      );
    },
  );
}

export function addTx(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('tx')
    .summary('Carry out several operations, all or none')
    .description(
      'Carries out a list of operations in one transaction: a JSON array, or one JSON object a ' +
        'line. Each is {"op", "collection", ...}: insert {data, key?, id?, ttl?}, update and merge ' +
        '{id or key, data}, upsert {key, data, mode?}, updateIfRev {id or key, expected_rev, data}, ' +
        'delete {id or key}, get {id or key}. When another commit comes in between, it starts over.',
    )
    .argument('[file]', 'file with the operations, or - for stdin (the default)')
    .example('ctl db tx transfer.json', 'from a file')
    .example(
      `echo '{"op":"delete","collection":"people","key":"ada"}' | ctl db tx`,
      'from another program',
    );
  withConnection(command, tools).action(
    async (file: string | undefined, flags: ConnectionFlags) => {
      const { readOperations, runOperations } = await import('./operations.js');
      const operations = await readOperations(file, tools.terminal);
      await withDatabase(tools, flags, (database) => runOperations(database, operations, tools));
    },
  );
}
