import { useEffect, useRef, useSyncExternalStore } from 'react';

/** `?`, `j`, or two keys one after the other: `g f`. */
type Keys = string;

interface Shortcut {
  keys: Keys;
  label: string;
  run: () => void;
}

const sequenceMs = 1200;
const storedName = 'millrace.shortcuts';
let shortcuts: readonly Shortcut[] = [];
let areOn = localStorage.getItem(storedName) !== 'off';
const listeners = new Set<() => void>();

function tell(): void {
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Binds keys for as long as the component is on the page. The newest binding wins. */
export function useShortcut(keys: Keys, label: string, run: () => void): void {
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(() => {
    const shortcut = { keys, label, run: () => latest.current() };
    shortcuts = [...shortcuts, shortcut];
    tell();
    return () => {
      shortcuts = shortcuts.filter((one) => one !== shortcut);
      tell();
    };
  }, [keys, label]);
}

/** What can be pressed now, for the help sheet. */
export function useShortcutList(): readonly Shortcut[] {
  return useSyncExternalStore(subscribe, () => shortcuts);
}

/** Single keys disturb some ways of using a page, so they can be turned off. */
export function useShortcutsOn(): [boolean, (on: boolean) => void] {
  const on = useSyncExternalStore(subscribe, () => areOn);
  return [
    on,
    (next) => {
      areOn = next;
      localStorage.setItem(storedName, next ? 'on' : 'off');
      tell();
    },
  ];
}

let first: { key: string; timer: ReturnType<typeof setTimeout> } | undefined;

/** Listens for the whole page; call once. */
export function listenForShortcuts(): void {
  document.addEventListener('keydown', (event) => {
    if (!areOn || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(event.target) || document.querySelector('dialog[open]')) return;
    const keys = first ? `${first.key} ${event.key}` : event.key;
    const found = shortcuts.findLast((one) => one.keys === keys);
    if (first) clearTimeout(first.timer);
    first = undefined;
    if (found) {
      event.preventDefault();
      found.run();
      return;
    }
    if (shortcuts.some((one) => one.keys.startsWith(`${event.key} `))) {
      first = { key: event.key, timer: setTimeout(() => (first = undefined), sequenceMs) };
    }
  });
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')
  );
}
