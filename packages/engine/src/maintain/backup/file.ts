import { createReadStream, existsSync, rmSync } from 'node:fs';
import { open, rename, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { messageOf, Refusal, systemCode } from '@millrace/kit/errors';
import type { Core } from '../../core/core.js';
import { refuse } from '../../value/documents.js';
import { isDiskFull } from '../../storage/file/files.js';
import { syncDirectory } from '../../storage/file/directory.js';
import { backup, type ArchiveOptions } from './backup.js';
import {
  damagedAt,
  frameKinds,
  FrameReader,
  jsonFrame,
  type Frame,
  headerFromJson,
  headerToJson,
  type BackupHeader,
  type BackupPart,
  type BackupTrailer,
} from './frames.js';
import { readBackup } from './reader.js';

/**
 * A backup file: these bytes, a frame with the header, the data, a frame with the trailer. An
 * NDJSON backup has only its lines.
 */
const magic = Buffer.from('MILLRACE BACKUP\n');

/** The bytes of a backup file: what `ctl db backup` writes and the REST bridge sends. */
export async function* fileBytes(
  parts: AsyncIterable<BackupPart>,
): AsyncGenerator<Buffer, void, void> {
  let isPlain = false;
  for await (const part of parts) {
    if (part.kind === 'data') yield part.bytes;
    else if (part.kind === 'header') {
      isPlain = part.header.format === 'ndjson';
      if (isPlain) continue;
      yield Buffer.concat([magic, jsonFrame(frameKinds.header, headerToJson(part.header))]);
    } else if (!isPlain) yield jsonFrame(frameKinds.trailer, part.trailer);
  }
}

/** The bytes of a backup file of one moment. What is refused is refused before the first of them. */
export async function backupBytes(
  core: Core,
  options: ArchiveOptions,
): Promise<AsyncIterable<Buffer>> {
  const bytes = fileBytes(backup(core, options));
  const first = await bytes.next();
  return (async function* () {
    if (!first.done) yield first.value;
    yield* bytes;
  })();
}

export interface WrittenBackup {
  header: BackupHeader;
  trailer: BackupTrailer;
}

/**
 * Writes a backup to a file. The file appears, or replaces one of that name, only once the backup
 * is complete, on disk and verified.
 */
export async function writeBackup(
  core: Core,
  file: string,
  options: ArchiveOptions = {},
): Promise<WrittenBackup> {
  const target = resolve(file);
  const unfinished = `${target}.unfinished-${core.random.ulid(core.clock.now())}`;
  await checkTarget(target);
  const made: { header?: BackupHeader; trailer?: BackupTrailer } = {};
  try {
    await writeDurably(unfinished, fileBytes(noted(backup(core, options), made)));
    if (made.header!.format === 'snapshot') await checkReadable(unfinished);
    await rename(unfinished, target);
    syncDirectory(dirname(target));
  } catch (error) {
    const isFull = isDiskFull(error, unfinished);
    rmSync(unfinished, { force: true });
    if (isFull) {
      const problem = `The disk is full; the backup was not written to ${file}.`;
      throw refuse('DISK_FULL', problem, undefined, { cause: error });
    }
    throw error;
  }
  return { header: made.header!, trailer: made.trailer! };
}

async function* noted(
  parts: AsyncIterable<BackupPart>,
  made: { header?: BackupHeader; trailer?: BackupTrailer },
): AsyncGenerator<BackupPart, void, void> {
  for await (const part of parts) {
    if (part.kind === 'header') made.header = part.header;
    if (part.kind === 'trailer') made.trailer = part.trailer;
    yield part;
  }
}

async function checkTarget(target: string): Promise<void> {
  if (!existsSync(dirname(target))) {
    const problem = `There is no directory ${dirname(target)}. Create it first.`;
    throw new Refusal('NO_SUCH_DIRECTORY', problem);
  }
  if (existsSync(target) && !(await stat(target)).isFile()) {
    throw new Refusal('NOT_A_FILE', `${target} is not a file. Name a file to write.`);
  }
}

async function writeDurably(path: string, pieces: AsyncIterable<Buffer>): Promise<void> {
  const handle = await open(path, 'w', 0o600);
  try {
    for await (const piece of pieces) await handle.writeFile(piece);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function checkReadable(path: string): Promise<void> {
  for await (const _ of readBackup(fileParts(path), path));
}

/** The parts of a backup file. Throws when it is not one, is incomplete or has extra bytes. */
export async function* fileParts(path: string): AsyncGenerator<BackupPart, void, void> {
  await checkRegular(path);
  const reader = new FileReader(path);
  try {
    yield { kind: 'header', header: await reader.header() };
    for (;;) {
      const frame = await reader.frame();
      if (!frame) throw refuse('CORRUPT', `${path} is incomplete: it ends without a trailer.`);
      if (frame.kind === frameKinds.trailer) {
        if (await reader.frame()) throw damagedAt(path, frame.at, 'something follows the trailer');
        yield { kind: 'trailer', trailer: jsonOf(frame, path) as BackupTrailer };
        return;
      }
      yield { kind: 'data', bytes: frame.bytes };
    }
  } finally {
    await reader.close();
  }
}

/** A pipe or a device might never end. A missing file fails when it is read. */
async function checkRegular(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (!found || found.isFile()) return;
  throw new Refusal('NOT_A_FILE', `Cannot read ${path}: it is not a file. Name a backup file.`);
}

class FileReader {
  readonly #bytes: AsyncIterator<Buffer>;
  readonly #frames: FrameReader;

  constructor(private readonly path: string) {
    const stream = createReadStream(path, { highWaterMark: 256 * 1024 });
    this.#bytes = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    this.#frames = new FrameReader(path, magic.length);
  }

  async header(): Promise<BackupHeader> {
    let start = Buffer.alloc(0);
    while (start.length < magic.length) {
      const piece = await this.#read();
      if (!piece) break;
      start = Buffer.concat([start, piece]);
    }
    if (!start.subarray(0, magic.length).equals(magic)) {
      throw refuse('CORRUPT', `${this.path} is not a Millrace backup.`);
    }
    this.#frames.push(start.subarray(magic.length));
    const frame = await this.frame();
    if (!frame) throw refuse('CORRUPT', `${this.path} is incomplete: it ends before its header.`);
    if (frame.kind !== frameKinds.header) throw damagedAt(this.path, frame.at, 'no header');
    return headerFromJson(jsonOf(frame, this.path) as Record<string, unknown>);
  }

  /** The next frame; undefined at the end of the file. */
  async frame(): Promise<Frame | undefined> {
    for (;;) {
      const frame = this.#frames.next();
      if (frame) return frame;
      const piece = await this.#read();
      if (!piece) {
        this.#frames.end();
        return undefined;
      }
      this.#frames.push(piece);
    }
  }

  async close(): Promise<void> {
    await this.#bytes.return?.();
  }

  async #read(): Promise<Buffer | undefined> {
    try {
      const step = await this.#bytes.next();
      return step.done ? undefined : step.value;
    } catch (error) {
      const code = systemCode(error);
      if (code === '') throw error;
      const problem = code === 'ENOENT' ? 'no such file' : messageOf(error);
      const reason = code === 'ENOENT' ? 'FILE_NOT_FOUND' : 'FILE_ERROR';
      throw new Refusal(reason, `Cannot read ${this.path}: ${problem}.`, { cause: error });
    }
  }
}

function jsonOf(frame: Frame, path: string): unknown {
  try {
    return JSON.parse(frame.payload.toString());
  } catch (error) {
    throw damagedAt(path, frame.at, messageOf(error));
  }
}
