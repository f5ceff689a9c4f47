/** What the entry of a vector begins with: each record has one. */
export const vectorTag = Buffer.of(1);

const maxCode = 127;

/** The largest magnitude in a vector divided by the largest code. */
export function scaleOf(vector: ArrayLike<number>): number {
  let largest = 0;
  for (let i = 0; i < vector.length; i++) largest = Math.max(largest, Math.abs(vector[i]!));
  return Math.fround(largest / maxCode);
}

/** Writes a vector as int8 codes: each times `scale` is about the number. */
export function quantize(vector: ArrayLike<number>, scale: number, to: Int8Array): void {
  for (let i = 0; i < vector.length; i++) {
    to[i] = scale === 0 ? 0 : Math.max(-maxCode, Math.min(maxCode, Math.round(vector[i]! / scale)));
  }
}

/** Whether float32 has a finite number for each of these. */
export function isInRange(vector: readonly number[]): boolean {
  return vector.every((one) => Number.isFinite(Math.fround(one)));
}

/**
 * A vector as it is stored beside its entry, little endian: four bytes for each number, or as int8
 * a scale of four bytes and one byte for each number.
 */
export function encodeVector(vector: readonly number[], storage = 'float32'): Buffer {
  if (storage === 'int8') {
    const bytes = Buffer.alloc(4 + vector.length);
    const scale = scaleOf(vector);
    bytes.writeFloatLE(scale, 0);
    quantize(vector, scale, new Int8Array(bytes.buffer, bytes.byteOffset + 4, vector.length));
    return bytes;
  }
  // The bytes of a Float32Array: all platforms of Node are little endian.
  return Buffer.from(new Float32Array(vector).buffer);
}

/** Reads a stored vector of `to.length` numbers; false: the row has none, as those of 0.1.0. */
export function decodeVector(bytes: Buffer, end: number, to: Float32Array): boolean {
  const { length } = to;
  if (end === 4 * length) {
    // Rows are at any place in the file: a Float32Array over them may not be aligned.
    bytes.copy(new Uint8Array(to.buffer, to.byteOffset, to.byteLength), 0, 0, end);
    return true;
  }
  if (end !== 4 + length) return false;
  const scale = bytes.readFloatLE(0);
  for (let i = 0; i < length; i++) to[i] = ((bytes[4 + i]! << 24) >> 24) * scale;
  return true;
}
