// An order and its mail in one transaction, with postgres.js.
import { submitIn } from '@millrace/worker';
import postgres from 'postgres';
import { tasks } from './tasks.mjs';

const sql = postgres(process.env.DATABASE_URL);
await sql.begin(async (tx) => {
  await tx`insert into orders (id) values ('by postgres.js')`;
  const client = { query: (text, values) => tx.unsafe(text, values) };
  console.log(await submitIn(client, tasks, 'mail.send', { to: 'postgres.js' }));
});
await sql.end();
