// An order and its mail in one transaction, with Kysely.
import { submitIn } from '@millrace/worker';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { tasks } from './tasks.mjs';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const db = new Kysely({ dialect: new PostgresDialect({ pool }) });
await db.transaction().execute(async (trx) => {
  await trx.insertInto('orders').values({ id: 'by Kysely' }).execute();
  const client = { query: (text, values) => trx.executeQuery(CompiledQuery.raw(text, values)) };
  console.log(await submitIn(client, tasks, 'mail.send', { to: 'Kysely' }));
});
await db.destroy();
