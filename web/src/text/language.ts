// The language of the page: the user's choice, or the first of the browser's languages that we have, or English. To
// change it, the page is loaded again: everywhere else, texts and formats are constants.
import { readSetting, storeSetting } from '../settings';

export const LANGUAGES = [{ id: 'en', name: 'English' }, { id: 'de', name: 'Deutsch' }] as const;

type Language = (typeof LANGUAGES)[number]['id'];

const SETTING = 'language';

function isLanguage(text: string | null): text is Language {
  return LANGUAGES.some(({ id }) => id === text);
}

// Such as 'de-AT'.
const preferred = typeof navigator === 'undefined' ? [] : navigator.languages;

export const language = [readSetting(SETTING), ...preferred.map((tag) => tag.slice(0, 2))].find(isLanguage) ?? 'en';
/** The browser's variant of the language, for numbers and dates: 'en-GB' differs from 'en-US'. */
export const locale = preferred.find((tag) => tag.slice(0, 2) === language) ?? language;

export function setLanguage(chosen: Language): void {
  storeSetting(SETTING, chosen);
  location.reload();
}
