import { fileURLToPath } from 'node:url';
import { startModule } from '../shared/processes.mjs';

const child = fileURLToPath(new URL('./child.mjs', import.meta.url));

/** The parent's end of one engine's process. */
export class Session {
  #process;
  #settle;
  #ended;
  #signal;

  /** When `signal` aborts, whoever waits for an answer is told so at once. */
  constructor(engine, directory, { signal, execArgv = [] }) {
    this.engine = engine;
    this.#signal = signal;
    const flags = { execArgv: ['--expose-gc', ...execArgv] };
    this.#process = startModule(child, [engine, directory], flags);
    this.#process.on('message', ({ result, error }) => this.#answer(result, error));
    const breakOff = () => this.#answer(undefined, 'broken off');
    signal.addEventListener('abort', breakOff);
    this.#ended = new Promise((resolve) => {
      this.#process.once('exit', (code, killedBy) => {
        signal.removeEventListener('abort', breakOff);
        this.#answer(undefined, `its process ended (${killedBy ?? code})`);
        resolve(killedBy ?? code);
      });
    });
  }

  /** Has the engine do one thing; resolves with what it measured. */
  ask(command, options = {}) {
    return new Promise((resolve, reject) => {
      this.#settle = { command, resolve, reject };
      if (this.#signal.aborted) this.#answer(undefined, 'broken off');
      else if (this.#process.connected) this.#process.send({ command, options });
      else this.#answer(undefined, 'its process is gone');
    });
  }

  /** Closes the engine and waits until its process is gone. Throws when that did not go well. */
  async end() {
    if (this.#process.connected) this.#process.disconnect();
    const outcome = await this.#ended;
    if (outcome !== 0) throw new Error(`The process of ${this.engine} ended with ${outcome}`);
  }

  #answer(result, error) {
    const waiting = this.#settle;
    this.#settle = undefined;
    if (!waiting) return;
    if (error === undefined) waiting.resolve(result);
    else waiting.reject(new Error(`${this.engine}, ${waiting.command}: ${error}`));
  }
}
