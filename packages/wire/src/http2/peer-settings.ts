import {
  ConnectionError,
  firstWindowBytes,
  frameBytes,
  largestWindowBytes,
  longestFrameBytes,
  settings,
} from './protocol.js';

const entryBytes = 6;

/** What the peer allows us. */
export class PeerSettings {
  initialWindowBytes = firstWindowBytes;
  frameBytes: number = frameBytes;
  /** Whether it ever kept less in its header table than everyone does at first. */
  hasSmallTable = false;

  /** Throws a ConnectionError for what cannot be set. */
  take(bytes: Buffer, start: number, end: number): void {
    if ((end - start) % entryBytes !== 0) {
      throw new ConnectionError('FRAME_SIZE_ERROR', 'settings end in the middle of one');
    }
    for (let at = start; at < end; at += entryBytes) {
      this.#set(bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2));
    }
  }

  #set(name: number, value: number): void {
    switch (name) {
      case settings.headerTableSize:
        if (value < 4_096) this.hasSmallTable = true;
        return;
      case settings.enablePush:
        if (value > 1) throw new ConnectionError('PROTOCOL_ERROR', 'push is on or off');
        return;
      case settings.initialWindowSize:
        if (value > largestWindowBytes) {
          throw new ConnectionError('FLOW_CONTROL_ERROR', 'a window is too large');
        }
        this.initialWindowBytes = value;
        return;
      case settings.maxFrameSize:
        if (value < frameBytes || value > longestFrameBytes) {
          throw new ConnectionError('PROTOCOL_ERROR', 'frames are too small or too large');
        }
        this.frameBytes = value;
    }
  }
}
