import { systemClock } from '@millrace/kit/clock';
import { humanDuration } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { printable, wrap } from '../render/text.js';
import type { Terminal } from '../base/terminal.js';

const indent = '   ';

/** Prints the events of the demo as steps for people or as lines of JSON. */
export class DemoReporter {
  readonly #startedAt = systemClock.monotonic();
  #steps = 0;

  constructor(private readonly terminal: Terminal) {}

  get elapsed(): string {
    return humanDuration(systemClock.monotonic() - this.#startedAt);
  }

  /** The next step and the command that does it. */
  step(title: string, command?: string): void {
    this.#steps++;
    const { out, json } = this.terminal;
    if (json) this.#line({ event: 'step', number: this.#steps, title, command: command ?? null });
    else {
      out.write(`\n${out.paint('strong', `${this.#steps}. ${title}`)}\n`);
      if (command !== undefined)
        out.write(`${indent}${out.paint('dim', `$ ${asTyped(command)}`)}\n`);
    }
  }

  /** An observed event. */
  saw(text: string, facts: object): void {
    if (this.terminal.json) this.#line({ event: 'saw', ...facts });
    else this.say(text);
  }

  /** Only for people. */
  say(text: string): void {
    const { out, json } = this.terminal;
    if (json) return;
    const width = Math.min(out.columns, 100) - indent.length;
    for (const line of text.split('\n')) {
      for (const piece of wrap(printable(line), width)) out.write(`${indent}${piece}\n`);
    }
  }

  /** The result, only for programs. */
  end(facts: object): void {
    if (this.terminal.json) this.#line({ event: 'end', ...facts });
  }

  #line(event: object): void {
    this.terminal.out.write(`${JSON.stringify(event)}\n`);
  }
}
