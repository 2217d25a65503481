// All texts of the page, in the user's language.
import { de } from './de';
import { en, type Text } from './en';
import { language } from './language';

export const text: Text = { en, de }[language];
