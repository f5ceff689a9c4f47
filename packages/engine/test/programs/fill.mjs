/**
 * Fills the database in the directory given until there is no room, reads everything back, and
 * when it is told that there is room again, goes on. Says what it sees, a line of JSON each.
 */
import { createInterface } from 'node:readline';
import { open } from '../../dist/index.js';

const db = await open(process.argv[2], {
  collections: { docs: { indexes: [{ fields: ['n'] }, { fields: ['email'], unique: true }] } },
});
const docs = db.collection('docs');
const acknowledged = new Map();
let next = 0;

const say = (what) => console.log(JSON.stringify(what));
const write = async () => {
  const n = next++;
  const { id } = await docs.insert({ n, email: `e${n}`, pad: 'x'.repeat(2_000) });
  acknowledged.set(id, n);
};

async function writeMany(count) {
  const ended = await Promise.allSettled(Array.from({ length: count }, write));
  return ended.flatMap(({ status, reason }) => (status === 'rejected' ? [reason.code] : []));
}

async function countMissing() {
  let missing = 0;
  for (const [id, n] of acknowledged) if ((await docs.findById(id))?.data.n !== n) missing++;
  return missing;
}

const refusals = [];
while (refusals.length < 60) refusals.push(...(await writeMany(20)));
say({
  refusals: [...new Set(refusals)],
  acknowledged: acknowledged.size,
  missing: await countMissing(),
  found: await docs.count({}),
});

const transaction = db.transactions.begin();
for (let i = 0; i < 200; i++) {
  await docs.insert({ n: -i, email: `t${i}`, pad: 'x'.repeat(20_000) }, { transaction });
}
const committed = await db.transactions.commit(transaction.id).catch((error) => error.code);
say({ transaction: committed, found: await docs.count({}), whole: (await db.verify()).ok });

for await (const _line of createInterface({ input: process.stdin })) {
  const again = await writeMany(300);
  say({ refusals: again, missing: await countMissing(), found: await docs.count({}) });
  break;
}
say({ whole: (await db.verify()).ok, acknowledged: acknowledged.size });
await db.close();
say({ closed: true });
