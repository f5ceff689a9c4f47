import type { Message } from '@bufbuild/protobuf';
import type { Pushing, PushSink } from '../service/pushing.js';
import type { StreamSender } from './sender.js';

const rows = new WeakMap<readonly Message[], Buffer>();

/**
 * Lets a stream that can do so send what it has by itself, all of a moment as one piece of bytes:
 * streams that show the same are given the same messages, of which the piece is made once.
 */
export function pushThrough(
  sender: StreamSender,
  messages: object & Partial<Pushing<Message>>,
  frame: (message: Message) => Buffer,
): void {
  const sink: PushSink<Message> = {
    hasRoom: () => sender.hasRoom(),
    take: (some) => sender.push(rowOf(some, frame)),
  };
  messages.pushTo?.(sink);
}

function rowOf(messages: readonly Message[], frame: (message: Message) => Buffer): Buffer {
  let row = rows.get(messages);
  if (!row) {
    const frames = messages.map(frame);
    rows.set(messages, (row = frames.length === 1 ? frames[0]! : Buffer.concat(frames)));
  }
  return row;
}
