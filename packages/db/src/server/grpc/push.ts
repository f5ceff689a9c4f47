import type { Message } from '@bufbuild/protobuf';
import { madeOnce } from '../service/made-once.js';
import type { Pushing, PushSink } from '../service/pushing.js';
import type { StreamSender } from './sender.js';

/**
 * Lets a stream that can do so send what it has by itself, all of a moment as one piece of bytes:
 * streams that show the same are given the same messages, of which the piece is made once for all
 * that have the same `frame`.
 */
export function pushThrough(
  sender: StreamSender,
  messages: object & Partial<Pushing<Message>>,
  frame: (message: Message) => Buffer,
): void {
  const sink: PushSink<Message> = {
    hasRoom: () => sender.hasRoom(),
    take: (some) => sender.push(madeOnce(some, rowOf, frame)),
  };
  messages.pushTo?.(sink);
}

function rowOf(messages: readonly Message[], frame: (message: Message) => Buffer): Buffer {
  const frames = messages.map(frame);
  return frames.length === 1 ? frames[0]! : Buffer.concat(frames);
}
