import { useRef } from 'preact/hooks';
import { isLanguage, type Language, languageNames, languages } from '../../../server/shared/texts/languages.ts';
import { useAction } from '../form/use-action.ts';
import { sentenceFor } from '../form/use-form.ts';
import { dropAskedLanguage } from '../session/way-back.ts';
import { keepLanguage } from './language-cookie.ts';
import { saveLanguage } from './language-of-profile.ts';
import { language, markup } from './texts.ts';

/** Chooses the language for this browser, and for the profile of a logged-in user. */
export function LanguagePicker() {
  const { refusal, act } = useAction();
  /** In a closed list each arrow and letter chooses another language: the last one counts, at Enter or at leaving it. */
  const isByKey = useRef(false);
  const choose = (chosen: string) => {
    if (isLanguage(chosen) && chosen !== language) void apply(chosen);
  };
  const apply = (chosen: Language) =>
    act('choose', async () => {
      await saveLanguage(chosen);
      keepLanguage(chosen);
      dropAskedLanguage();
      location.reload();
      return undefined;
    });

  return (
    <div class="language">
      <label for="language">
        {markup('common.page.language', { unseen: (label) => <span class="unseen">{label}</span> })}
      </label>
      <select
        id="language"
        value={language}
        onPointerDown={() => {
          isByKey.current = false;
        }}
        onKeyDown={({ key, currentTarget: { value } }) => {
          isByKey.current = true;
          if (key === 'Enter') choose(value);
        }}
        onChange={({ currentTarget: { value } }) => {
          if (!isByKey.current) choose(value);
        }}
        onBlur={({ currentTarget: { value } }) => choose(value)}
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
