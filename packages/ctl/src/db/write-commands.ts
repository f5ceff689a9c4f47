import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
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

const dataHelp = 'JSON object, @file, or - for stdin (the default)';

export function addInsert(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('insert')
    .summary('Insert a record')
    .description('Insert a record and print it. With --record-key it fails if the key exists.')
    .argument('<collection>', 'name of the collection')
    .argument('[data]', dataHelp)
    .option('--record-key <key>', 'Key of the new record')
    .option('--id <ulid>', 'Id of the new record (default: generated)')
    .option('--ttl <duration>', 'Time to live: 30m; 0 means no expiry')
    .option(
      '--request-id <text>',
      'Idempotency key: repeating the insert with it within 10 minutes inserts nothing',
    )
    .example(`ctl db insert people '{"name":"Ada","age":36}'`, 'with a generated id')
    .example(`ctl db insert people @ada.json --record-key ada`, 'from a file, under a key');
  withConnection(command, tools).action(
    async (collection: string, data: string | undefined, flags: InsertFlags) => {
      const [{ insertRecord }, { documentOf, durationOf }] = await Promise.all([
        import('./writes.js'),
        import('../base/arguments.js'),
      ]);
      const options = {
        collection,
        data: await documentOf(data, tools.terminal),
        key: flags.recordKey,
        id: flags.id,
        ttlMs: durationOf(flags.ttl, '--ttl'),
        requestId: flags.requestId,
      };
      await withDatabase(tools, flags, (database) => insertRecord(database, options, tools));
    },
  );
}

export function addPut(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('put')
    .summary('Create or replace the record with a key')
    .description('Create or replace the record with this key, and print it.')
    .argument('<collection>', 'name of the collection')
    .argument('<key>', 'key of the record')
    .argument('[data]', dataHelp)
    .option(
      '--merge',
      'Merge into the existing record (null removes a field) instead of replacing it',
    )
    .option(
      '--if-rev <number>',
      'Only if the record still has this revision; 0: only if there is none',
    )
    .option('--ttl <duration>', 'Time to live from now: 30m; 0 means no expiry')
    .option(
      '--request-id <text>',
      'Idempotency key: repeating the write with it within 10 minutes changes nothing',
    )
    .example(`ctl db put people ada '{"name":"Ada","age":36}'`, 'create or replace')
    .example(`ctl db put people ada '{"age":37}' --merge`, 'change one field')
    .example(`ctl db put people ada @ada.json --if-rev 3`, 'unless somebody else changed it first');
  withConnection(command, tools).action(
    async (collection: string, key: string, data: string | undefined, flags: PutFlags) => {
      const [{ putRecord }, { documentOf, durationOf, wholeNumber }] = await Promise.all([
        import('./writes.js'),
        import('../base/arguments.js'),
      ]);
      const options = {
        collection,
        key,
        data: await documentOf(data, tools.terminal),
        merge: flags.merge ?? false,
        ifRev: wholeNumber(flags.ifRev, '--if-rev'),
        ttlMs: durationOf(flags.ttl, '--ttl'),
        requestId: flags.requestId,
      };
      await withDatabase(tools, flags, (database) => putRecord(database, options, tools));
    },
  );
}

export function addDelete(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('delete')
    .summary('Delete one record')
    .description('Delete the record with this key or id, and print its last version.')
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
    .summary('Run several operations in one transaction')
    .description(
      'Run a list of operations in one transaction: a JSON array, or one JSON object per ' +
        'line. Each is {"op", "collection", ...}: insert {data, key?, id?, ttl?}, update and ' +
        'merge {id or key, data}, upsert {key, data, mode?}, updateIfRev {id or key, ' +
        'expected_rev, data}, delete {id or key}, get {id or key}. The transaction is ' +
        'retried if it conflicts with another commit.',
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
