import { silentLog } from '@millrace/kit/log';
import { expect, test } from 'vitest';
import { Floors } from './floors.js';
import { Looks } from './looks.js';

const queue = 'mail';
const floorAt = 1_000_000;
/** A walk over what is dead takes so many milliseconds for a second of it. */
const deadMsPerSecond = 2;

/** What is ready and dead in the database by due time, and a clock that goes by what is asked. */
class Scene {
  now = 0;
  ready: number[] = [];
  deadFrom = Infinity;
  asked = 0;
  givenUp = 0;
  shared: string | undefined;
  warnings = 0;
  readonly floors = new Floors();
  readonly looks = new Looks(
    {
      ask: (_, values) => {
        if (!values) return Promise.resolve([]);
        this.shared = values[1] as string;
        return Promise.resolve([]);
      },
      askWithin: <Row>(limitMs: number, _: unknown, values?: readonly unknown[]) => {
        const [from, before] = values!.slice(4) as number[];
        return Promise.resolve(this.#look(limitMs, from!, before!) as Row[] | undefined);
      },
    },
    this.floors,
    () => this.now,
    { ...silentLog, warn: () => void this.warnings++ },
  );

  constructor() {
    const last: (number | undefined)[] = [];
    last[4] = floorAt;
    this.floors.end(queue, this.floors.begin(queue, 1), last);
  }

  /** Looks whenever a claim may, for so long. */
  async lookFor(ms: number): Promise<void> {
    for (const end = this.now + ms; this.now < end; this.now += 10) await this.looks.look(queue);
  }

  #look(limitMs: number, from: number, before: number): object[] | undefined {
    this.asked++;
    const dead = Math.max(0, Math.min(before, floorAt) - Math.max(from, this.deadFrom));
    const tookMs = 1 + (dead / 1_000) * deadMsPerSecond;
    this.now += Math.min(tookMs, limitMs);
    if (tookMs > limitMs) {
      this.givenUp++;
      return undefined;
    }
    const found = this.ready.filter((due) => due >= from && due < before);
    return found.length === 0 ? [] : [{ priority: 4, due_at: Math.min(...found) }];
  }
}

test('everything below the floors is looked through once a second', async () => {
  const scene = new Scene();
  scene.ready = [400_000];
  await scene.lookFor(5_000);
  expect(scene.asked).toBe(5);
  expect(Math.max(...scene.floors.above(queue))).toBe(399_750);
  expect(scene.warnings).toBe(0);
});

test('where very much is dead, it is looked through in parts, and what is ready is a stray', async () => {
  const scene = new Scene();
  scene.deadFrom = 100_000;
  scene.ready = [400_000];
  await scene.lookFor(120_000);
  expect(scene.warnings).toBe(1);
  expect(scene.floors.stray(queue)).toEqual({ from: 400_000, to: 400_000 });
  expect(Math.max(...scene.floors.above(queue))).toBe(floorAt - 250);
});

test('a look rests most of the time, and little of it is given up', async () => {
  const scene = new Scene();
  scene.deadFrom = 100_000;
  const before = scene.now;
  await scene.lookFor(200_000);
  expect(scene.asked).toBeLessThan((scene.now - before) / 1_000);
  expect(scene.givenUp).toBeLessThan(scene.asked / 3);
});

test('when the dead are gone, all is looked through at once again', async () => {
  const scene = new Scene();
  scene.deadFrom = 100_000;
  await scene.lookFor(50_000);
  scene.deadFrom = Infinity;
  await scene.lookFor(50_000);
  scene.ready = [400_000];
  await scene.lookFor(2_000);
  expect(scene.floors.stray(queue)).toBeUndefined();
  expect(Math.max(...scene.floors.above(queue))).toBe(399_750);
});

test('the floors are told to servers that begin later', async () => {
  const scene = new Scene();
  await scene.lookFor(100);
  expect(JSON.parse(scene.shared!)).toEqual(scene.floors.above(queue));
});

test('a queue that nothing was claimed from is not looked at', async () => {
  const scene = new Scene();
  await scene.looks.look('other');
  expect(scene.asked).toBe(0);
});
