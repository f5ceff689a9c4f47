/**
 * What PostgreSQL is asked, in a process of its own: `pg` is the client its users have. Says so
 * when it is the client, not the server, that is busy.
 */
import { createRequire } from 'node:module';
import { document } from './messages.mjs';

const require = createRequire(import.meta.url);
const [connection, name, clients, seconds] = process.argv.slice(2);
const pg = require('pg');

const statements = {
  insert: () => ['insert into writes (data) values ($1) returning id', [document(1)]],
  read: () => ['select data from keyed where key = $1', ['k1']],
  find: () => ["select data from people where data->>'city' = $1 limit 100", ['Port 001']],
};

const pool = new pg.Pool({ ...JSON.parse(connection), max: Number(clients) });
let count = 0;
if (name === 'stream') {
  const started = performance.now();
  const { rows } = await pool.query('select data from people order by id');
  report(rows.length, performance.now() - started);
} else {
  const [text, values] = statements[name]();
  const one = () => pool.query({ name, text, values });
  await Promise.all(Array.from({ length: Number(clients) }, one));
  const started = performance.now();
  const stopAt = started + Number(seconds) * 1_000;
  const client = async () => {
    while (performance.now() < stopAt) {
      await one();
      count++;
    }
  };
  await Promise.all(Array.from({ length: Number(clients) }, client));
  report(count, performance.now() - started);
}
await pool.end();

function report(done, ms) {
  const { user, system } = process.cpuUsage();
  const busy = (user + system) / 1_000 / ms;
  console.log(JSON.stringify({ perSecond: (done / ms) * 1_000, clientBusy: busy }));
}
