/**
 * What every engine stores: about 300 bytes of JSON, eight fields, an object and an array within.
 * The same number always gives the same document, so that all engines hold the same data.
 */
const cities = Array.from({ length: 100 }, (_, i) => `Port ${String(i).padStart(3, '0')}`);
const streets = ['Harbour Street', 'Mill Lane', 'Old Station Road', 'Upper Weir'];
const words = ['grain', 'water', 'wheel', 'stone', 'sluice', 'timber', 'flour', 'barge'];
const note = 'Prefers deliveries before noon; leave at the loading dock.';

export const ages = 80;

export function person(i) {
  const mixed = scatter(i);
  return {
    name: nameOf(i),
    email: `person.${mixed}@mail.example.org`,
    age: 18 + (mixed % ages),
    city: cities[(mixed >>> 8) % cities.length],
    score: (mixed % 100_000) / 100,
    address: {
      street: `${streets[mixed & 3]} ${mixed % 200}`,
      zip: String(10_000 + (mixed % 90_000)),
      country: 'NL',
    },
    tags: [words[mixed & 7], words[(mixed >>> 3) & 7], words[(mixed >>> 6) & 7]],
    note,
  };
}

export function nameOf(i) {
  return `Person Number ${i}`;
}

export function task(i, dueAt) {
  return {
    queue: 'mail',
    state: 'due',
    due_at: dueAt + i,
    attempt: 0,
    method: 'POST',
    url: `https://callbacks.example.org/mail/${i}`,
    headers: { 'content-type': 'application/json', 'x-tenant': `tenant-${i % 50}` },
    payload: ['welcome', i, 'A short body that stands for what a caller wants delivered.'],
  };
}

/** The fields that single writes are indexed by. */
export const indexedFields = ['city', 'age', 'email'];

export function cityOf(i) {
  return cities[i % cities.length];
}

/** Spreads the numbers, so that neighbours in time are not neighbours in an index. */
function scatter(i) {
  let x = Math.imul(i + 1, 0x9e3779b1);
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  return (x ^ (x >>> 13)) >>> 0;
}
