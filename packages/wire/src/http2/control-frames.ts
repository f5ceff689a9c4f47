import {
  errorCodes,
  flags,
  frameHeadBytes,
  frameTypes,
  settings,
  type ErrorName,
} from './protocol.js';

/** Frames that are not for the answers of calls. */
function frame(type: number, frameFlags: number, streamId: number, payloadBytes: number): Buffer {
  const bytes = Buffer.alloc(frameHeadBytes + payloadBytes);
  bytes.writeUIntBE(payloadBytes, 0, 3);
  bytes[3] = type;
  bytes[4] = frameFlags;
  bytes.writeUInt32BE(streamId, 5);
  return bytes;
}

export function settingsFrame(values: Partial<Record<keyof typeof settings, number>>): Buffer {
  const entries = Object.entries(values) as [keyof typeof settings, number][];
  const bytes = frame(frameTypes.settings, 0, 0, 6 * entries.length);
  entries.forEach(([name, value], i) => {
    bytes.writeUInt16BE(settings[name], frameHeadBytes + 6 * i);
    bytes.writeUInt32BE(value, frameHeadBytes + 6 * i + 2);
  });
  return bytes;
}

export const settingsAck = frame(frameTypes.settings, flags.ack, 0, 0);

export const pingFrame = frame(frameTypes.ping, 0, 0, 8);

export function pingAck(bytes: Buffer, start: number): Buffer {
  const answer = frame(frameTypes.ping, flags.ack, 0, 8);
  bytes.copy(answer, frameHeadBytes, start, start + 8);
  return answer;
}

export function windowUpdate(streamId: number, byteCount: number): Buffer {
  const bytes = frame(frameTypes.windowUpdate, 0, streamId, 4);
  bytes.writeUInt32BE(byteCount, frameHeadBytes);
  return bytes;
}

export function rstStream(streamId: number, code: ErrorName): Buffer {
  const bytes = frame(frameTypes.rstStream, 0, streamId, 4);
  bytes.writeUInt32BE(errorCodes[code], frameHeadBytes);
  return bytes;
}

export function goaway(lastStreamId: number, code: ErrorName, text: string): Buffer {
  const bytes = frame(frameTypes.goaway, 0, 0, 8 + text.length);
  bytes.writeUInt32BE(lastStreamId, frameHeadBytes);
  bytes.writeUInt32BE(errorCodes[code], frameHeadBytes + 4);
  bytes.write(text, frameHeadBytes + 8, 'latin1');
  return bytes;
}
