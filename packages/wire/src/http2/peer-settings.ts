import {
  ConnectionError,
  defaultWindowBytes,
  frameBytes,
  maxWindowBytes,
  maxFrameBytes,
  settings,
} from './protocol.js';

const entryBytes = 6;

/** The SETTINGS of the peer. */
export class PeerSettings {
  initialWindowBytes = defaultWindowBytes;
  frameBytes: number = frameBytes;
  maxConcurrentStreams = Infinity;
  /** Whether the peer ever set a header table below the default size. */
  hasSmallTable = false;

  /** Throws a ConnectionError for invalid values. */
  take(bytes: Buffer, start: number, end: number): void {
    if ((end - start) % entryBytes !== 0) {
      throw new ConnectionError('FRAME_SIZE_ERROR', 'SETTINGS length is not a multiple of 6');
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
        if (value > 1)
          throw new ConnectionError('PROTOCOL_ERROR', 'SETTINGS_ENABLE_PUSH is not 0 or 1');
        return;
      case settings.maxConcurrentStreams:
        this.maxConcurrentStreams = value;
        return;
      case settings.initialWindowSize:
        if (value > maxWindowBytes) {
          throw new ConnectionError('FLOW_CONTROL_ERROR', 'flow-control window exceeds 2^31-1');
        }
        this.initialWindowBytes = value;
        return;
      case settings.maxFrameSize:
        if (value < frameBytes || value > maxFrameBytes) {
          throw new ConnectionError('PROTOCOL_ERROR', 'SETTINGS_MAX_FRAME_SIZE out of range');
        }
        this.frameBytes = value;
    }
  }
}
