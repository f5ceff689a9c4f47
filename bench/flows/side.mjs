/**
 * The worker of a contestant as a process of its own, by its own SDK; it also starts the flows.
 * Commands come as messages; each is answered with a message. Arguments: KIND CONNECTION.
 */
import { contestants } from './kinds.mjs';

const [kind, connectionText] = process.argv.slice(2);

/** Milliseconds on the clock that all processes of the machine share. */
const now = () => Number(process.hrtime.bigint()) / 1e6;
let isHanging = false;
let secondStep;
const events = {
  now,
  /** What the second step of a flow does that is to be killed: it never ends where it began. */
  second: () => {
    secondStep?.(now());
    return isHanging ? new Promise(() => {}) : null;
  },
};
const seen = () => new Promise((resolve) => (secondStep = resolve));
const contestant = await contestants[kind](JSON.parse(connectionText), events);
const resumed = seen();

const commands = {
  /** Runs flows of empty steps at the same time. */
  steps: async ({ flows, steps }) => {
    const startedAt = now();
    await Promise.all(Array.from({ length: flows }, () => contestant.flow(steps)));
    return now() - startedAt;
  },
  /** From the end of a child to the next step of its parent, one after the other. */
  wakeUps: async ({ samples }) => {
    const times = [];
    for (let i = 0; i < samples; i++) times.push(await contestant.wakeUp());
    return times.toSorted((a, b) => a - b);
  },
  fan: async ({ children }) => {
    const startedAt = now();
    await contestant.fan(children);
    return now() - startedAt;
  },
  /** Begins a flow and answers when its second step runs. */
  hang: async () => {
    isHanging = true;
    const begun = seen();
    contestant.hang().catch(() => {});
    await begun;
  },
  resumed: () => resumed,
};

process.on('message', ({ command, ...params }) => {
  commands[command](params).then(
    (value) => process.send({ value }),
    (error) => process.send({ error: error.stack }),
  );
});
process.on('disconnect', () => process.exit());
process.send({ value: now() });
