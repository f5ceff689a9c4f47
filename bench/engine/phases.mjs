/**
 * The phases of a run. In each, every engine has a process of its own, and they take turns:
 * one short window each, round after round.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ages, indexedFields } from './documents.mjs';
import { Session } from './session.mjs';

const warmUpMs = 400;
const callerCounts = [1, 64, 512];
const bulkTurns = 4;
const queueShape = { workers: 4, batch: 64 };
/** Engines whose work is done by a server: the process that asks tells nothing of its cost. */
const elsewhere = new Set(['postgres']);

const phases = { writes: writesPhase, queue: queuePhase, large: largePhase };

export async function runPhases(run) {
  for (const phase of run.options.phases) {
    const started = performance.now();
    await phases[phase](run);
    run.note(`${phase}: ${Math.round((performance.now() - started) / 1_000)} s`);
  }
}

async function writesPhase(run) {
  const { rounds, windowMs } = run.options;
  await withSessions(run, 'writes', async (sessions) => {
    const tables = { plain: [], indexed: indexedFields };
    await inTurn(sessions, (session) => session.ask('open', { tables }));
    // Many callers, so that the code is warm also where the disk is slow.
    const warmUp = { callers: 512, windowMs: run.options.quick ? warmUpMs : 3 * warmUpMs };
    for (const table of Object.keys(tables)) {
      await inTurn(sessions, (session) => session.ask('writes', { ...warmUp, table }));
    }
    for (let round = 0; round < rounds; round++) {
      for (const table of Object.keys(tables)) {
        for (const callers of callerCounts) {
          await inTurn(sessions, async (session) => {
            const found = await session.ask('writes', { table, callers, windowMs });
            note(run, `writes/${table}/${callers}`, session.engine, found);
            if (callers < 512 || elsewhere.has(session.engine)) return;
            run.results.add(`loop/${table}`, session.engine, found.loopP99Ms);
          });
        }
      }
    }
  });
}

async function queuePhase(run) {
  const { rounds, tasks } = run.options;
  await withSessions(run, 'queue', async (sessions) => {
    const tables = { tasks: [['state', 'due_at']] };
    await inTurn(sessions, (session) => session.ask('open', { tables }));
    const warmUp = { ...queueShape, tasks: Math.ceil(tasks / 10) };
    await inTurn(sessions, (session) => session.ask('queue', warmUp));
    for (let round = 0; round < rounds; round++) {
      await inTurn(sessions, async (session) => {
        note(run, 'queue', session.engine, await session.ask('queue', { ...queueShape, tasks }));
      });
    }
  });
}

async function largePhase(run) {
  const directories = makeDirectories(run, 'large');
  try {
    await withSessions(run, 'large', (sessions) => fill(run, sessions), directories);
    await withSessions(run, 'large', (sessions) => buildIndex(run, sessions), directories);
    for (let round = 1; round < run.options.rounds; round++) {
      await withSessions(run, 'large', (sessions) => openLarge(run, sessions), directories);
    }
    await withSessions(run, 'large', (sessions) => readLarge(run, sessions), directories);
  } finally {
    removeAll(directories);
  }
}

async function fill(run, sessions) {
  const { records } = run.options;
  const turns = new Map(run.engines.map((each) => [each, []]));
  await inTurn(sessions, (session) => session.ask('open', { tables: { people: [] } }));
  for (let turn = 0; turn < bulkTurns; turn++) {
    const from = Math.floor((records * turn) / bulkTurns);
    const to = Math.floor((records * (turn + 1)) / bulkTurns);
    await inTurn(sessions, async (session) => {
      turns.get(session.engine).push(await session.ask('bulk', { from, to }));
    });
  }
  for (const [engine, found] of turns) {
    const sum = (name) => found.reduce((total, each) => total + each[name], 0);
    const cpuMicros = sum('cpuMicros') / bulkTurns;
    note(run, 'bulk', engine, { perSecond: records / sum('seconds'), cpuMicros });
  }
  await inTurn(sessions, (session) => session.ask('saveSample'));
}

const largeTables = { people: ['city'] };

async function buildIndex(run, sessions) {
  await inTurn(sessions, async (session) => {
    const ms = await session.ask('open', { tables: largeTables });
    run.results.add('indexBuild', session.engine, (run.options.records / ms) * 1_000);
  });
}

async function openLarge(run, sessions) {
  await inTurn(sessions, async (session) => {
    const ms = await session.ask('open', { tables: largeTables });
    if (!elsewhere.has(session.engine)) run.results.add('open', session.engine, ms);
  });
}

async function readLarge(run, sessions) {
  const { rounds, records, windowMs } = run.options;
  await openLarge(run, sessions);
  for (const load of ['pointReads', 'finds']) {
    await inTurn(sessions, (session) => session.ask(load, { windowMs: warmUpMs }));
  }
  for (let round = 0; round < rounds; round++) {
    for (const load of ['pointReads', 'finds']) {
      await inTurn(sessions, async (session) => {
        note(run, load, session.engine, await session.ask(load, { windowMs: windowMs / 2 }));
      });
    }
    const age = 18 + (round % ages);
    await answersAgree(run, sessions, 'filter', { records, age });
    await answersAgree(run, sessions, 'aggregate', { records });
  }
  await inTurn(sessions, async (session) => {
    if (elsewhere.has(session.engine)) return;
    const { heapMb, rssMb } = await session.ask('memory');
    run.results.add('heap', session.engine, heapMb);
    run.results.add('rss', session.engine, rssMb);
  });
}

function note({ results }, measure, engine, { perSecond, cpuMicros }) {
  results.add(measure, engine, perSecond);
  if (!elsewhere.has(engine)) results.add(`cpu/${measure}`, engine, cpuMicros);
}

/** A fast answer counts only when it is the same as everyone's. */
async function answersAgree(run, sessions, load, options) {
  const answers = new Map();
  await inTurn(sessions, async (session) => {
    const found = await session.ask(load, options);
    note(run, load, session.engine, found);
    answers.set(session.engine, found.answer);
  });
  if (new Set(answers.values()).size > 1) {
    const shown = Array.from(
      answers,
      ([engine, answer]) => `${engine}: ${String(answer).slice(0, 200)}`,
    );
    throw new Error(`${load}: the engines disagree\n${shown.join('\n')}`);
  }
}

/** Runs `work` with a process for each engine, and ends them whatever happens. */
async function withSessions(run, phase, work, given) {
  const directories = given ?? makeDirectories(run, phase);
  const sessions = run.engines.map((engine) => {
    const { signal } = run;
    return new Session(engine, directories.get(engine), {
      signal,
      execArgv: flagsFor(run, engine),
    });
  });
  const outcomes = await Promise.allSettled([work(sessions)]);
  outcomes.push(...(await Promise.allSettled(sessions.map((session) => session.end()))));
  if (!given) removeAll(directories);
  // The first is the cause, when there are several.
  const failure = outcomes.find(({ status }) => status === 'rejected');
  if (failure) throw failure.reason;
}

function flagsFor({ options }, engine) {
  if (engine !== 'millrace' || !options.profile) return [];
  return ['--cpu-prof', `--cpu-prof-dir=${options.profile}`];
}

async function inTurn(sessions, act) {
  for (const session of sessions) await act(session);
}

function makeDirectories(run, phase) {
  const directories = run.engines.map((engine) => [engine, join(run.home, `${phase}-${engine}`)]);
  for (const [, directory] of directories) mkdirSync(directory);
  return new Map(directories);
}

function removeAll(directories) {
  for (const each of directories.values()) rmSync(each, { recursive: true, force: true });
}
