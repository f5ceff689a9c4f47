import { Refusal } from '@millrace/kit/errors';
import { exitText, type Child, type Exit } from './child.js';
import { SupervisedPart, type PartEvent } from './supervised-part.js';
import { parts, type Listener, type Part } from './parts.js';
import { ManualClock } from './manual-clock.test-support.js';

/** A process that a test controls. */
export class FakeChild implements Child {
  readonly pid = 1;
  readonly ready: Promise<readonly Listener[]>;
  readonly ended: Promise<Exit>;
  readonly signals: string[] = [];
  #announce: (listeners: readonly Listener[]) => void = () => undefined;
  #end: (exit: Exit) => void = () => undefined;

  constructor(
    private readonly part: Part,
    private readonly diary: string[],
    private readonly drains: boolean,
  ) {
    diary.push(`start ${part.name}`);
    this.ended = new Promise((resolve) => (this.#end = resolve));
    this.ready = new Promise((resolve, reject) => {
      this.#announce = resolve;
      void this.ended.then((exit) => reject(new Refusal('PART_FAILED', exitText(exit))));
    });
    this.ready.catch(() => undefined);
  }

  announce(): void {
    this.#announce([{ listener: 'http', url: `http://127.0.0.1/${this.part.name}` }]);
  }

  die(lastWords: string, code = 1): void {
    this.#end({ code, signal: null, lastWords });
  }

  kill(signal: NodeJS.Signals): void {
    this.signals.push(signal);
    this.diary.push(`${signal} ${this.part.name}`);
    if (signal === 'SIGKILL') this.#end({ code: null, signal, lastWords: '' });
    else if (this.drains) this.die('', 0);
  }
}

/** A supervised server whose processes are fakes, each of which announces itself at once. */
export class FakePart {
  readonly children: FakeChild[] = [];
  readonly events: PartEvent[] = [];
  readonly before: (readonly Listener[])[] = [];
  readonly supervised: SupervisedPart;
  announces = true;
  drains = true;

  constructor(
    name: Part['name'],
    readonly diary: string[] = [],
    readonly clock = new ManualClock(),
  ) {
    const part = parts.find((each) => each.name === name)!;
    this.supervised = new SupervisedPart(part, {
      clock,
      launch: (before) => {
        this.before.push(before);
        const child = new FakeChild(part, diary, this.drains);
        this.children.push(child);
        if (this.announces) child.announce();
        return child;
      },
      onEvent: (event) => this.events.push(event),
    });
  }

  get last(): FakeChild {
    return this.children.at(-1)!;
  }
}
