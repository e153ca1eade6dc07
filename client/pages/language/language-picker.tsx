import type { TargetedEvent } from 'preact';
import { isLanguage, languageNames, languages } from '../../../server/shared/texts/languages.ts';
import { useAction } from '../form/use-action.ts';
import { sentenceFor } from '../form/use-form.ts';
import { dropAskedLanguage } from '../session/way-back.ts';
import { keepLanguage } from './language-cookie.ts';
import { saveLanguage } from './language-of-profile.ts';
import { language, markup } from './texts.ts';

/** True while a key event is handled: keys in a closed list select a language, which applies at Enter or blur. */
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
          if (event.key === 'Enter') return choose(event);
          isByKey = true;
          // An opened list fires its change after this timer.
          setTimeout(() => {
            isByKey = false;
          });
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
