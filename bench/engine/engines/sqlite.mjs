/**
 * better-sqlite3: JSON text, expression indexes, write-ahead log with synchronous=FULL. It is
 * synchronous, so writes that arrive in one turn of the event loop share one transaction: what
 * many callers would get from it at best.
 */
import Database from 'better-sqlite3';
import { systemRandom } from '@millrace/kit/random';
import { join } from 'node:path';

export async function open(directory, tables) {
  const db = new Database(join(directory, 'data.sqlite'));
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma('cache_size = -65536');
  for (const [name, fields] of Object.entries(tables)) {
    if (name === 'tasks') createTasks(db);
    else createDocuments(db, name, fields);
  }
  return new Sqlite(db, Object.keys(tables));
}

function createDocuments(db, name, fields) {
  db.exec(`CREATE TABLE IF NOT EXISTS ${name} (id TEXT PRIMARY KEY, data TEXT NOT NULL)`);
  for (const field of fields) {
    db.exec(
      `CREATE INDEX IF NOT EXISTS ${name}_${field} ON ${name} (json_extract(data, '$.${field}'))`,
    );
  }
}

// Whoever keeps a queue in SQL gives it columns.
function createTasks(db) {
  db.exec(`
    CREATE TABLE IF NOT EXISTS tasks
      (id TEXT PRIMARY KEY, state TEXT NOT NULL, due_at INTEGER NOT NULL, data TEXT NOT NULL);
    CREATE INDEX IF NOT EXISTS tasks_due ON tasks (state, due_at);
  `);
}

class Sqlite {
  #waiting = [];
  #insert = {};
  #sql = new Map();

  constructor(db, names) {
    this.db = db;
    for (const name of names) {
      if (name === 'tasks') continue;
      this.#insert[name] = db.prepare(`INSERT INTO ${name} (id, data) VALUES (?, ?)`);
    }
  }

  insert(name, doc) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ name, doc, resolve, reject });
      if (this.#waiting.length === 1) setImmediate(() => this.#commit());
    });
  }

  #commit() {
    const writes = this.#waiting;
    this.#waiting = [];
    try {
      this.#atomically(() => {
        for (const { name, doc } of writes) {
          this.#insert[name].run(systemRandom.ulid(Date.now()), JSON.stringify(doc));
        }
      });
      for (const { resolve } of writes) resolve();
    } catch (error) {
      for (const { reject } of writes) reject(error);
    }
  }

  load(name, docs) {
    const ids = docs.map(() => systemRandom.ulid(Date.now()));
    this.#atomically(() => {
      if (name === 'tasks') {
        const insert = this.#prepare('INSERT INTO tasks VALUES (?, ?, ?, ?)');
        docs.forEach((doc, i) => insert.run(ids[i], doc.state, doc.due_at, JSON.stringify(doc)));
      } else docs.forEach((doc, i) => this.#insert[name].run(ids[i], JSON.stringify(doc)));
    });
    return ids;
  }

  get(id) {
    const row = this.#prepare('SELECT data FROM people WHERE id = ?').get(id);
    return row && JSON.parse(row.data);
  }

  find(city, limit) {
    const sql = `SELECT data FROM people WHERE json_extract(data, '$.city') = ? LIMIT ?`;
    return this.#prepare(sql)
      .all(city, limit)
      .map((row) => JSON.parse(row.data));
  }

  filter(age) {
    const sql = `SELECT data FROM people WHERE json_extract(data, '$.age') = ?`;
    const found = [];
    for (const { data } of this.#prepare(sql).iterate(age)) found.push(JSON.parse(data));
    return found.length;
  }

  aggregate() {
    return this.#prepare(
      `SELECT json_extract(data, '$.age') AS age, count(*) AS count,
              avg(json_extract(data, '$.score')) AS average
       FROM people GROUP BY 1`,
    ).all();
  }

  claim(now, limit) {
    const sql = `
      UPDATE tasks SET state = 'in_flight', due_at = ?
      WHERE id IN (SELECT id FROM tasks WHERE state = 'due' AND due_at <= ? ORDER BY due_at LIMIT ?)
      RETURNING id, data`;
    const claim = this.#prepare(sql);
    const rows = this.#atomically(() => claim.all(now + 30_000, now, limit));
    return rows.map(({ id, data }) => ({ id, ...JSON.parse(data) }));
  }

  complete(tasks, now) {
    const sql = `UPDATE tasks SET state = 'done', due_at = ? WHERE id = ? AND state = 'in_flight'`;
    const complete = this.#prepare(sql);
    this.#atomically(() => tasks.forEach(({ id }) => complete.run(now, id)));
  }

  countDone() {
    return this.#prepare(`SELECT count(*) AS count FROM tasks WHERE state = 'done'`).get().count;
  }

  close() {
    this.db.close();
  }

  #atomically(work) {
    return this.db.transaction(work).immediate();
  }

  #prepare(sql) {
    let statement = this.#sql.get(sql);
    if (!statement) this.#sql.set(sql, (statement = this.db.prepare(sql)));
    return statement;
  }
}
