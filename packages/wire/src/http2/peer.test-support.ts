import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect } from 'vitest';
import {
  callFrames,
  callHeaders,
  frame,
  framesOf,
  preface,
  type Frame,
} from '../grpc/frames.test-support.js';
import { framed, type TestTransport } from '../grpc/transport.test-support.js';
import { flags, frameTypes } from './frames.js';

/** Frames of calls to the echo method of the test server. */
export const hello = framed(Buffer.from('hello'));
export const echo = (more: Record<string, string> = {}) => callHeaders('/t.T/Echo', more);
export const open = (id: number, block = echo()) =>
  frame(frameTypes.headers, flags.endHeaders, id, block);
export const whole = (id: number, block = echo()) =>
  frame(frameTypes.headers, flags.endHeaders | flags.endStream, id, block);
export const data = (id: number, payload = hello, more = 0) =>
  frame(frameTypes.data, more, id, payload);
export const set = (name: number, value: number) =>
  frame(frameTypes.settings, 0, 0, settingsPayload({ name, value }));
export const call = (id: number) => callFrames(id, '/t.T/Echo', hello);

export interface Setting {
  readonly name: number;
  readonly value: number;
}

export function settingsPayload(...entries: readonly Setting[]): Buffer {
  const bytes = Buffer.alloc(6 * entries.length);
  entries.forEach(({ name, value }, i) => {
    bytes.writeUInt16BE(name, 6 * i);
    bytes.writeUInt32BE(value, 6 * i + 2);
  });
  return bytes;
}

/** A raw HTTP/2 client that sends any bytes and records the frames it receives. */
export class RawPeer {
  #bytes: Buffer[] = [];
  isClosed = false;

  private constructor(readonly socket: Socket) {
    socket.on('data', (chunk: Buffer) => void this.#bytes.push(chunk));
    socket.on('close', () => (this.isClosed = true));
  }

  /** It has said its preface; settings are up to the test. */
  static async dial(server: TestTransport): Promise<RawPeer> {
    const peer = new RawPeer(await server.dial());
    peer.send(preface);
    return peer;
  }

  send(...bytes: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(bytes));
  }

  get frames(): Frame[] {
    this.#bytes = [Buffer.concat(this.#bytes)];
    return framesOf(this.#bytes[0]!);
  }

  of(type: number, stream?: number): Frame[] {
    return this.frames.filter(
      (each) => each.type === type && (stream === undefined || each.stream === stream),
    );
  }

  /** What was sent in the frames of data of a stream. */
  data(stream: number): Buffer {
    return Buffer.concat(this.of(frameTypes.data, stream).map(({ payload }) => payload));
  }

  /** The GOAWAY error code, after the connection has closed. */
  async goaway(): Promise<number> {
    if (!this.isClosed) await once(this.socket, 'close');
    const [frame] = this.of(frameTypes.goaway);
    return frame ? frame.payload.readUInt32BE(4) : -1;
  }

  /** The code with which it ended a stream. */
  async rst(stream: number): Promise<number> {
    await this.until(() => this.isClosed || this.of(frameTypes.rstStream, stream).length > 0);
    return this.of(frameTypes.rstStream, stream)[0]?.payload.readUInt32BE() ?? -1;
  }

  async until(isTrue: () => boolean): Promise<void> {
    await expect.poll(isTrue, { timeout: 60_000, interval: 5 }).toBe(true);
  }

  hasEnded(stream: number): boolean {
    return this.frames.some(
      (each) => each.stream === stream && (each.flags & 1) === 1 && each.type <= 1,
    );
  }
}
