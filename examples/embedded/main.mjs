// A to-do list in a directory: no server, no configuration. Run it twice to see it remember.
import { open } from '@millrace/db';

const db = await open(process.argv[2] ?? './data/todo', {
  collections: { todos: { indexes: [{ fields: ['due'] }] } },
});
const todos = db.collection('todos');

// A key makes a write repeatable: the second run finds these records instead of adding more.
await todos.upsertMerge('water', { text: 'Water the plants', due: 2 });
await todos.upsertMerge('bread', { text: 'Bake bread', due: 1 });
const { created } = await todos.upsertMerge('mill', { text: 'Mend the mill race', due: 3 });
console.log(created ? 'Made a new list.' : 'Found the list of the last run.');

// The first that is not done is done now. Refused if somebody changed it since it was read.
const notDone = { field: 'done', op: 'ne', value: true };
const next = await todos.findOne({ filter: notDone, orderBy: [{ field: 'due' }] });
if (next) {
  await todos.updateIfRev({ key: next.key }, next.rev, { ...next.data, done: true });
  console.log('Did:', next.data.text);
}

const left = await todos.count(notDone);
console.log(`${left} left to do, ${await todos.count()} in all.`);

await db.close();
