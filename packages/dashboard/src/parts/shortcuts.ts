import { useEffect, useRef, useSyncExternalStore } from 'react';

/** One key such as `?`, or a sequence of two: `g f`. */
type Keys = string;

interface Shortcut {
  keys: Keys;
  label: string;
  run: () => void;
}

const sequenceMs = 1200;
const storedName = 'millrace.shortcuts';
let shortcuts: readonly Shortcut[] = [];
let areEnabled = localStorage.getItem(storedName) !== 'off';
const listeners = new Set<() => void>();

function notifyListeners(): void {
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Binds keys while the component is mounted. The newest binding wins. */
export function useShortcut(keys: Keys, label: string, run: () => void): void {
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(() => {
    const shortcut = { keys, label, run: () => latest.current() };
    shortcuts = [...shortcuts, shortcut];
    notifyListeners();
    return () => {
      shortcuts = shortcuts.filter((one) => one !== shortcut);
      notifyListeners();
    };
  }, [keys, label]);
}

/** The active shortcuts, for the help sheet. */
export function useShortcutList(): readonly Shortcut[] {
  return useSyncExternalStore(subscribe, () => shortcuts);
}

/** Single keys can interfere with assistive technology, so they can be disabled. */
export function useShortcutsOn(): [boolean, (on: boolean) => void] {
  const on = useSyncExternalStore(subscribe, () => areEnabled);
  return [
    on,
    (next) => {
      areEnabled = next;
      localStorage.setItem(storedName, next ? 'on' : 'off');
      notifyListeners();
    },
  ];
}

let first: { key: string; timer: ReturnType<typeof setTimeout> } | undefined;

/** Installs the key listener of the page; call once. */
export function listenForShortcuts(): void {
  document.addEventListener('keydown', (event) => {
    if (!areEnabled || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey)
      return;
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
