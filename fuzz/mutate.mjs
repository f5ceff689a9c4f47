/** A seeded generator of numbers (xorshift), so that a run can be repeated. */
function generator(seed) {
  let state = (seed ^ 0x9e3779b9) >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

const interesting = [0, 1, 0x7f, 0x80, 0xff, 0x0a, 0x20, 0x22, 0x2c, 0x30, 0x5b, 0x5c, 0x7b, 0x7d];
const numbers = ['0', '-1', '1e308', '1e-7', '9007199254740993', '2147483648', '0.5', '-0'];
const json = ['null', 'true', '{}', '[]', '""', '"__proto__"', '"\\ud800"', '"\\u0000"', '[[[]]]'];

/** Answers a function that makes a new input from some of the kept ones. */
export function mutator(seed, dictionary, maxBytes) {
  const below = generator(seed);
  const one = (list) => list[below(list.length)];
  const words = [...dictionary, ...numbers, ...json].map((word) => Buffer.from(word));
  const steps = [
    flipBit,
    setByte,
    setByte,
    removeRange,
    copyRange,
    insertWord,
    insertWord,
    replaceWithWord,
    splice,
    setNumber,
    repeatRange,
  ];

  function range(input) {
    const start = below(input.length + 1);
    const most = below(8) === 0 ? input.length - start : Math.min(32, input.length - start);
    return [start, start + below(most + 1)];
  }
  const join = (...parts) => Buffer.concat(parts).subarray(0, maxBytes);

  function flipBit(input) {
    const at = below(input.length);
    input[at] ^= 1 << below(8);
    return input;
  }
  function setByte(input) {
    input[below(input.length)] = below(2) === 0 ? one(interesting) : below(256);
    return input;
  }
  function setNumber(input) {
    if (input.length < 4) return setByte(input);
    const at = below(input.length - 3);
    input.writeUInt32BE(one([0, 1, 0xff, 0x7fffffff, 0xffffffff, below(65_536)]), at);
    return input;
  }
  function removeRange(input) {
    const [start, end] = range(input);
    return join(input.subarray(0, start), input.subarray(end));
  }
  function copyRange(input) {
    const [start, end] = range(input);
    const at = below(input.length + 1);
    return join(input.subarray(0, at), input.subarray(start, end), input.subarray(at));
  }
  function repeatRange(input) {
    const [start, end] = range(input);
    const copies = Array.from({ length: 1 << below(7) }, () => input.subarray(start, end));
    return join(input.subarray(0, start), ...copies, input.subarray(end));
  }
  function insertWord(input) {
    const at = below(input.length + 1);
    return join(input.subarray(0, at), one(words), input.subarray(at));
  }
  function replaceWithWord(input) {
    const [start, end] = range(input);
    return join(input.subarray(0, start), one(words), input.subarray(end));
  }
  function splice(input, kept) {
    const other = one(kept);
    const [start, end] = range(other);
    const at = below(input.length + 1);
    return join(input.subarray(0, at), other.subarray(start, end), input.subarray(at));
  }

  return (kept) => {
    let input = Buffer.from(one(kept));
    for (let count = 1 + below(1 << below(5)); count > 0; count--) {
      if (input.length === 0) input = Buffer.from(one(words));
      input = one(steps)(input, kept);
    }
    return input;
  };
}
