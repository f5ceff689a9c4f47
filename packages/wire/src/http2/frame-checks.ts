import { ConnectionError } from './protocol.js';

export function protocolError(text: string): ConnectionError {
  return new ConnectionError('PROTOCOL_ERROR', text);
}

export function checkLength(byteCount: number, actual: number): void {
  if (actual === byteCount) return;
  throw new ConnectionError('FRAME_SIZE_ERROR', `frame payload has ${actual} bytes`);
}

export function checkStreamId(id: number): void {
  if (id === 0) throw protocolError('frame requires a stream ID');
}

export function checkConnectionFrame(id: number): void {
  if (id !== 0) throw protocolError('frame requires stream ID 0');
}

export function dependencyAt(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) & 0x7fffffff;
}

export function paddingAt(bytes: Buffer, start: number, end: number): number {
  if (start === end) throw new ConnectionError('FRAME_SIZE_ERROR', 'frame has no pad length');
  return bytes[start]!;
}
