// An order and its mail in one transaction, with Drizzle.
import { submitIn } from '@millrace/worker';
import { drizzle } from 'drizzle-orm/node-postgres';
import { pgTable, text } from 'drizzle-orm/pg-core';
import { tasks } from './tasks.mjs';

const orders = pgTable('orders', { id: text('id').primaryKey() });
const db = drizzle(process.env.DATABASE_URL);
await db.transaction(async (tx) => {
  await tx.insert(orders).values({ id: 'by Drizzle' });
  // The connection of the transaction.
  const { client } = tx.session;
  console.log(await submitIn(client, tasks, 'mail.send', { to: 'Drizzle' }));
});
await db.$client.end();
