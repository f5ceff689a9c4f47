import type { Place } from '../transcripts/detection.js';

/** A place with the repository of its directory. */
export interface KnownPlace extends Place {
  repo: string;
}

/** Assigns a stable number to every place, to make rows short. */
export class PlaceNumbers {
  readonly #known: KnownPlace[] = [];
  readonly #numbers = new Map<string, number>();
  /** Places whose rows are not on disk yet. */
  readonly #unsaved = new Set<number>();

  at(number: number): KnownPlace {
    const place = this.#known[number];
    if (!place) throw new Error(`The tally has no place ${number}`);
    return place;
  }

  numberOf(place: Place): number | undefined {
    return this.#numbers.get(nameOf(place));
  }

  /** Loads a row from disk. */
  load(number: number, place: KnownPlace): void {
    this.#known[number] = place;
    this.#numbers.set(nameOf(place), number);
  }

  add(place: KnownPlace): void {
    if (this.numberOf(place) !== undefined) return;
    const number = this.#known.length;
    this.load(number, place);
    this.#unsaved.add(number);
  }

  unsaved(): readonly number[] {
    return [...this.#unsaved];
  }

  saved(numbers: readonly number[]): void {
    for (const number of numbers) this.#unsaved.delete(number);
  }
}

function nameOf({ backend, agent, cwd, model, rank }: Place): string {
  return `${backend}\0${rank}\0${agent}\0${model}\0${cwd}`;
}
