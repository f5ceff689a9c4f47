/** One server-sent event. */
export interface ReceivedEvent {
  id: string | undefined;
  type: string;
  data: string;
}

/** Incremental parser of server-sent events. */
export class EventParser {
  #rest = '';
  #id: string | undefined;
  #type = '';
  #data: string[] = [];

  /** The last id that was received, also of an event without data. */
  get lastId(): string | undefined {
    return this.#id;
  }

  push(text: string): ReceivedEvent[] {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop()!;
    const events: ReceivedEvent[] = [];
    for (const line of lines) {
      const event = this.#line(line.endsWith('\r') ? line.slice(0, -1) : line);
      if (event) events.push(event);
    }
    return events;
  }

  #line(line: string): ReceivedEvent | undefined {
    if (line === '') return this.#dispatch();
    const found = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
    const [, field = '', value = ''] = found ?? [];
    if (field === 'data') this.#data.push(value);
    else if (field === 'event') this.#type = value;
    else if (field === 'id') this.#id = value;
    return undefined;
  }

  #dispatch(): ReceivedEvent | undefined {
    const event = { id: this.#id, type: this.#type || 'message', data: this.#data.join('\n') };
    const isEmpty = this.#data.length === 0;
    this.#type = '';
    this.#data = [];
    return isEmpty ? undefined : event;
  }
}
