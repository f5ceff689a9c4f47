/**
 * Bulk writes and changes by filter: batches of records that are inserted at once, changed by one
 * filter and mostly deleted by another.
 */
const commitRecords = 1_000;

/** Each batch in its turn. Every call has a request id. */
export async function writeBatches({ db, ledger, random, round }) {
  for (let n = 0; ; n++) {
    const size = random.integer(0, 9) === 0 ? commitRecords + 500 : random.integer(5, 40);
    const batch = { tag: `${round}-${n}`, size, isAtomic: random.integer(0, 1) === 0 };
    for (const op of random.integer(0, 15) === 0 ? ['bulk', 'update'] : steps) {
      const number = ledger.sent('batch', { ...batch, op });
      ledger.answered(number, await runStep(db, { ...batch, op }));
    }
  }
}

const steps = ['bulk', 'update', 'delete'];

/** Does one step of a batch, or repeats it. Returns how many records it changed. */
async function runStep(db, { tag, size, isAtomic, op }) {
  const batches = db.collection('batches');
  const call = { requestId: `${op}-${tag}` };
  const filter = { field: 'batch', op: 'eq', value: tag };
  if (op === 'update') return changedBy(await batches.updateMany(filter, { state: 1 }, call));
  if (op === 'delete') return changedBy(await batches.deleteMany(filter, call));
  const inserts = Array.from({ length: size }, (_, i) => ({
    insert: { key: `${tag}-${i}`, data: { batch: tag, state: 0 } },
  }));
  const { results, seq } = await batches.bulkWrite(inserts, { ...call, atomic: isAtomic });
  return { changed: results.filter(({ status }) => status === 'OK').length, seq };
}

function changedBy({ changed, seq }) {
  return { changed, seq };
}

/** `memory.batches`: tag to what must be there of it. */
export async function checkBatches(db, entries, memory, problems) {
  const sent = entries.filter(({ kind }) => kind === 'batch');
  for (const { tag, size, op, answer } of sent.filter((each) => each.answer)) {
    if (answer.changed !== size) problems.push(`${op} of ${tag}: ${answer.changed} of ${size}`);
    remember(memory, tag, size, op);
  }
  // Sent and not answered: some of its commits are done. Repeated, all are, and once.
  for (const step of sent.filter(({ answer }) => !answer)) {
    checkPart(step, await countsOf(db, step.tag), problems);
    const { changed } = await runStep(db, step);
    if (changed !== step.size) problems.push(`${step.op} of ${step.tag} repeated: ${changed}`);
    remember(memory, step.tag, step.size, step.op);
  }
  await checkRepeat(
    db,
    sent.findLast(({ answer }) => answer),
    problems,
  );
  for (const [tag, { size, changed }] of memory.batches) {
    const found = await countsOf(db, tag);
    if (found.all !== size || found.changed !== changed) {
      problems.push(`batch ${tag} has ${found.all} records, ${found.changed} changed, of ${size}`);
    }
  }
  const expected = [...memory.batches.values()].reduce((sum, { size }) => sum + size, 0);
  const all = await db.collection('batches').count();
  if (all !== expected) problems.push(`the batches have ${all} records, not ${expected}`);
}

function remember({ batches }, tag, size, op) {
  if (op === 'delete') batches.delete(tag);
  else batches.set(tag, { size, changed: op === 'update' ? size : 0 });
}

/** A step that was cut short has done whole commits, and an atomic one has only one. */
function checkPart({ tag, size, isAtomic, op }, { all, changed }, problems) {
  const done = op === 'bulk' ? all : op === 'update' ? changed : size - all;
  const isWhole = done === 0 || done === size;
  if (isWhole || (done % commitRecords === 0 && !(op === 'bulk' && isAtomic))) return;
  problems.push(`${op} of ${tag} is there by half: ${done} of ${size}`);
}

/** The last answered step: the same answer, and nothing happens. */
async function checkRepeat(db, step, problems) {
  if (!step) return;
  const before = db.core.durable.seq;
  const again = await runStep(db, step);
  if (JSON.stringify(again) !== JSON.stringify(step.answer)) {
    problems.push(`${step.op} of ${step.tag} was answered ${JSON.stringify(again)} again`);
  }
  if (db.core.durable.seq !== before) problems.push(`${step.op} of ${step.tag} was done again`);
}

async function countsOf(db, tag) {
  const batches = db.collection('batches');
  const inBatch = { field: 'batch', op: 'eq', value: tag };
  const isChanged = { field: 'state', op: 'eq', value: 1 };
  return {
    all: await batches.count(inBatch),
    changed: await batches.count({ and: [inBatch, isChanged] }),
  };
}
