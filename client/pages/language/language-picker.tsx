import type { TargetedEvent } from 'preact';
import { isLanguage, languageNames, languages } from '../../../server/shared/texts/languages.ts';
import { useAction } from '../form/use-action.ts';
import { sentenceFor } from '../form/use-form.ts';
import { dropAskedLanguage } from '../session/way-back.ts';
import { keepLanguage } from './language-cookie.ts';
import { saveLanguage } from './language-of-profile.ts';
import { language, markup } from './texts.ts';

/** In a closed list each arrow key and letter selects a language; the selection applies at Enter or on blur. */
let isByKey = false;

/** Chooses the language for this browser, and for the profile of a logged-in user. */
export function LanguagePicker() {
  const { refusal, act } = useAction();
  const choose = ({ currentTarget: { value } }: TargetedEvent<HTMLSelectElement>) => {
    if (isByKey || !isLanguage(value) || value === language) return;
    void act('choose', async () => {
      await saveLanguage(value);
      keepLanguage(value);
      dropAskedLanguage();
      location.reload();
      return undefined;
    });
  };

  return (
    <div class="language">
      <label for="language">
        {markup('common.page.language', { unseen: (label) => <span class="unseen">{label}</span> })}
      </label>
      <select
        id="language"
        value={language}
        onKeyDown={(event) => {
          // A list that these open sends no keys, and a choice in it applies at once.
          isByKey = !event.altKey && !['Enter', ' ', 'F4'].includes(event.key);
          if (event.key === 'Enter') choose(event);
        }}
        onPointerDown={() => {
          isByKey = false;
        }}
        onChange={choose}
        onBlur={(event) => {
          isByKey = false;
          choose(event);
        }}
      >
        {languages.map((tag) => (
          <option key={tag} value={tag} lang={tag}>
            {languageNames[tag]}
          </option>
        ))}
      </select>
      {refusal && (
        <p class="error" role="alert">
          {sentenceFor(refusal)}
        </p>
      )}
    </div>
  );
}
