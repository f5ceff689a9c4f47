// An order and its mail in one transaction, with pg.
import { submitIn } from '@millrace/worker';
import pg from 'pg';
import { tasks } from './tasks.mjs';

const client = new pg.Client(process.env.DATABASE_URL);
await client.connect();
await client.query('begin');
await client.query("insert into orders (id) values ('by pg')");
console.log(await submitIn(client, tasks, 'mail.send', { to: 'pg' }));
await client.query('commit');
await client.end();
