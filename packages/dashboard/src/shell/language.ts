/**
 * Chromium without a locale says `en-US@posix`, which `Intl` refuses. Libraries pass the language on,
 * so a page with charts would fail.
 */
export function repairLanguage(navigator: Pick<Navigator, 'language'>): void {
  try {
    Intl.getCanonicalLocales(navigator.language);
  } catch {
    Object.defineProperty(navigator, 'language', { value: 'en-US', configurable: true });
  }
}
