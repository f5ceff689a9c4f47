import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, renameSync, statSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Clock, Timer } from '@millrace/kit/clock';
import { systemCode, UsageError } from '@millrace/kit/errors';

/** Who holds a directory. Enough to tell a live holder from one that was killed. */
interface Holder {
  pid: number;
  /** When the process began, in the system's own words: pids are used again. */
  started: string;
  host: string;
  token: string;
}

const beatEveryMs = 2_000;
// Only for a holder on another host (a container that is gone), whose process cannot be looked up.
const silentForMs = 15_000;

/** Directories held by this process, so that a second `open` here is told apart from a stale lock. */
const heldHere = new Set<string>();

/**
 * One process may have a database open. The lock is a file that names its holder and is touched
 * every two seconds; a holder that was killed leaves it behind, and the next opener sees that the
 * process is gone and takes it over.
 */
export class DirectoryLock {
  readonly #file: string;
  readonly #token = randomUUID();
  #timer: Timer | undefined;

  constructor(
    directory: string,
    private readonly clock: Clock,
  ) {
    this.#file = join(directory, 'LOCK');
    this.#take(directory);
    heldHere.add(this.#file);
    this.#beat();
  }

  release(): void {
    this.#timer?.cancel();
    heldHere.delete(this.#file);
    if (readHolder(this.#file)?.token === this.#token) unlinkSync(this.#file);
  }

  #take(directory: string): void {
    const mine = `${this.#file}.${this.#token}`;
    const holder: Holder = {
      pid: process.pid,
      started: startOf(process.pid),
      host: hostname(),
      token: this.#token,
    };
    writeFileSync(mine, JSON.stringify(holder));
    try {
      for (let attempt = 0; attempt < 3; attempt++) {
        try {
          // link, unlike rename, fails when the name is taken: only one opener wins.
          linkSync(mine, this.#file);
          return;
        } catch (error) {
          if (systemCode(error) !== 'EEXIST') throw error;
        }
        const other = readHolder(this.#file);
        if (other && this.#isAlive(other)) throw inUse(directory, other);
        this.#setAside();
      }
      throw inUse(directory, readHolder(this.#file));
    } finally {
      unlinkSync(mine);
    }
  }

  /** Moves a dead holder's lock away; of several openers that try, one succeeds. */
  #setAside(): void {
    const aside = `${this.#file}.stale.${this.#token}`;
    try {
      renameSync(this.#file, aside);
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return;
      throw error;
    }
    const moved = readHolder(aside);
    if (moved && this.#isAlive(moved)) {
      // Another opener was faster: its fresh lock goes back where it was.
      try {
        linkSync(aside, this.#file);
      } catch (error) {
        if (systemCode(error) !== 'EEXIST') throw error;
      }
    }
    unlinkSync(aside);
  }

  #isAlive(holder: Holder): boolean {
    if (holder.host !== hostname()) {
      return this.clock.now() - statSync(this.#file).mtimeMs < silentForMs;
    }
    if (holder.pid === process.pid) return heldHere.has(this.#file);
    try {
      process.kill(holder.pid, 0);
    } catch (error) {
      if (systemCode(error) === 'ESRCH') return false;
    }
    const started = startOf(holder.pid);
    return started === '' || holder.started === '' || started === holder.started;
  }

  #beat(): void {
    this.#timer = this.clock.after(beatEveryMs, () => {
      const now = this.clock.now() / 1_000;
      try {
        utimesSync(this.#file, now, now);
      } catch (error) {
        // The directory may be gone with the test or the volume; the lock guards nothing then.
        if (systemCode(error) !== 'ENOENT') throw error;
      }
      this.#beat();
    });
  }
}

function readHolder(file: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Holder;
  } catch (error) {
    // Gone, or written by a process that died in the middle: nobody holds it.
    if (systemCode(error) === 'ENOENT' || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The start time of a process in ticks since boot, or "" where the system does not tell. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command, in parentheses, may itself contain spaces and parentheses.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch (error) {
    if (systemCode(error) === '') throw error;
    return '';
  }
}

function inUse(directory: string, holder: Holder | undefined): UsageError {
  const who = holder ? `process ${holder.pid} on ${holder.host}` : 'another process';
  return new UsageError(
    `The database in ${directory} is in use by ${who}. Stop it first, or open another directory.`,
  );
}
