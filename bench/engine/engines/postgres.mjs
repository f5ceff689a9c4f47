/**
 * PostgreSQL over a Unix socket with a pool of connections: jsonb, expression indexes, prepared
 * statements, several rows per statement where rows come in batches.
 */
import { systemRandom } from '@millrace/kit/random';
import pg from 'pg';
import { startServer } from './postgres-server.mjs';

/** One round trip at a time says nothing about a server. */
export const parallelReads = 32;

const connections = 32;
const casts = { age: '::int' };

export async function open(directory, tables) {
  const server = await startServer(directory);
  const pool = new pg.Pool({ ...server.connection, max: connections });
  for (const [name, fields] of Object.entries(tables)) {
    if (name === 'tasks') await pool.query(tasksTable);
    else await createDocuments(pool, name, fields);
  }
  return new Postgres(server, pool);
}

async function createDocuments(pool, name, fields) {
  await pool.query(`CREATE TABLE IF NOT EXISTS ${name} (id text PRIMARY KEY, data jsonb NOT NULL)`);
  for (const field of fields) {
    const value = `((data->>'${field}')${casts[field] ?? ''})`;
    await pool.query(`CREATE INDEX IF NOT EXISTS ${name}_${field} ON ${name} (${value})`);
  }
  await pool.query(`ANALYZE ${name}`);
}

// Whoever keeps a queue in SQL gives it columns.
const tasksTable = `
  CREATE TABLE IF NOT EXISTS tasks
    (id text PRIMARY KEY, state text NOT NULL, due_at bigint NOT NULL, data jsonb NOT NULL);
  CREATE INDEX IF NOT EXISTS tasks_due ON tasks (state, due_at);`;

class Postgres {
  #closing = false;

  constructor(server, pool) {
    this.server = server;
    this.pool = pool;
    pool.on('error', (error) => {
      // The server says goodbye to connections that are on their way out.
      if (!this.#closing) throw error;
    });
  }

  async insert(name, doc) {
    const values = [systemRandom.ulid(Date.now()), JSON.stringify(doc)];
    await this.#query(`insert_${name}`, `INSERT INTO ${name} VALUES ($1, $2)`, values);
  }

  async load(name, docs) {
    const ids = docs.map(() => systemRandom.ulid(Date.now()));
    const data = docs.map((doc) => JSON.stringify(doc));
    if (name === 'tasks') {
      const sql = `INSERT INTO tasks SELECT id, data->>'state', (data->>'due_at')::bigint, data
                   FROM unnest($1::text[], $2::jsonb[]) AS given (id, data)`;
      await this.#query('load_tasks', sql, [ids, data]);
    } else {
      const sql = `INSERT INTO ${name} SELECT * FROM unnest($1::text[], $2::jsonb[])`;
      await this.#query(`load_${name}`, sql, [ids, data]);
    }
    return ids;
  }

  async get(id) {
    const rows = await this.#query('get', 'SELECT data FROM people WHERE id = $1', [id]);
    return rows[0]?.data;
  }

  async find(city, limit) {
    const sql = `SELECT data FROM people WHERE data->>'city' = $1 LIMIT $2`;
    return (await this.#query('find', sql, [city, limit])).map((row) => row.data);
  }

  async filter(age) {
    const sql = `SELECT data FROM people WHERE (data->>'age')::int = $1`;
    return (await this.#query('filter', sql, [age])).length;
  }

  aggregate() {
    return this.#query(
      'aggregate',
      `SELECT (data->>'age')::int AS age, count(*)::int AS count,
              avg((data->>'score')::float8) AS average
       FROM people GROUP BY 1`,
      [],
    );
  }

  async claim(now, limit) {
    const sql = `
      UPDATE tasks SET state = 'in_flight', due_at = $1
      WHERE id = ANY (ARRAY(
        SELECT id FROM tasks WHERE state = 'due' AND due_at <= $2
        ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED))
      RETURNING id, data`;
    const rows = await this.#query('claim', sql, [now + 30_000, now, limit]);
    return rows.map(({ id, data }) => ({ id, ...data }));
  }

  async complete(tasks, now) {
    const sql = `UPDATE tasks SET state = 'done', due_at = $1
                 WHERE id = ANY ($2) AND state = 'in_flight'`;
    await this.#query('complete', sql, [now, tasks.map(({ id }) => id)]);
  }

  async countDone() {
    const sql = `SELECT count(*)::int AS count FROM tasks WHERE state = 'done'`;
    return (await this.#query('done', sql, []))[0].count;
  }

  async close() {
    this.#closing = true;
    await this.pool.end();
    await this.server.stop();
  }

  async #query(name, text, values) {
    return (await this.pool.query({ name, text, values })).rows;
  }
}
