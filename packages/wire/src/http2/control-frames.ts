import {
  errorCodes,
  flags,
  frameHeaderBytes,
  frameTypes,
  settings,
  type ErrorName,
} from './protocol.js';

/** Builds control frames; response frames are written by FrameWriter. */
function frame(type: number, frameFlags: number, streamId: number, payloadBytes: number): Buffer {
  const bytes = Buffer.alloc(frameHeaderBytes + payloadBytes);
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
    bytes.writeUInt16BE(settings[name], frameHeaderBytes + 6 * i);
    bytes.writeUInt32BE(value, frameHeaderBytes + 6 * i + 2);
  });
  return bytes;
}

export const settingsAck = frame(frameTypes.settings, flags.ack, 0, 0);

export const pingFrame = frame(frameTypes.ping, 0, 0, 8);

export function pingAck(bytes: Buffer, start: number): Buffer {
  const answer = frame(frameTypes.ping, flags.ack, 0, 8);
  bytes.copy(answer, frameHeaderBytes, start, start + 8);
  return answer;
}

export function windowUpdate(streamId: number, byteCount: number): Buffer {
  const bytes = frame(frameTypes.windowUpdate, 0, streamId, 4);
  bytes.writeUInt32BE(byteCount, frameHeaderBytes);
  return bytes;
}

export function rstStream(streamId: number, code: ErrorName): Buffer {
  const bytes = frame(frameTypes.rstStream, 0, streamId, 4);
  bytes.writeUInt32BE(errorCodes[code], frameHeaderBytes);
  return bytes;
}

export function goaway(lastStreamId: number, code: ErrorName, text: string): Buffer {
  const bytes = frame(frameTypes.goaway, 0, 0, 8 + text.length);
  bytes.writeUInt32BE(lastStreamId, frameHeaderBytes);
  bytes.writeUInt32BE(errorCodes[code], frameHeaderBytes + 4);
  bytes.write(text, frameHeaderBytes + 8, 'latin1');
  return bytes;
}
