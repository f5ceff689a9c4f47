import { expect, test } from 'vitest';
import { Course, type Sample } from './watching.js';

function sample(more: Partial<Sample>): Sample {
  const counts = { pending: 0, inFlight: 0, dead: 0, oldestMs: 0 };
  return { name: 'mail', ...counts, paused: false, callbacks: undefined, ...more };
}

test('the rate is that of callbacks, and a server that started again begins again', () => {
  const course = new Course();
  const rates = [100, 150, 10, 40].map(
    (callbacks, at) => course.add([sample({ callbacks })], at * 500)[0]?.rate,
  );
  expect(rates).toEqual([undefined, 100, undefined, 60]);
  expect(course.add([sample({ callbacks: 40 })], 2_000)[0]?.course).toEqual([100, 60, 0]);
});

test('without metrics it is what the backlog grows by', () => {
  const course = new Course();
  course.add([sample({ pending: 10, inFlight: 2 })], 0);
  const [watched] = course.add([sample({ pending: 4, inFlight: 4 })], 2_000);
  expect(watched).toMatchObject({ rate: -2, course: [12, 8] });
});

test('a queue that comes later has no rate yet, and one that went is forgotten', () => {
  const course = new Course();
  course.add([sample({ name: 'a', pending: 5 })], 0);
  expect(course.add([sample({ name: 'b' })], 1000)[0]?.rate).toBeUndefined();
  expect(course.add([sample({ name: 'a', pending: 9 })], 2000)[0]?.course).toEqual([9]);
});
