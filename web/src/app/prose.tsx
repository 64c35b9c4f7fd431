// Sentences of reports: text in backticks is code, names may break between their parts.

import { Fragment } from "preact";
import type { DocumentNote } from "../profile/document.ts";

/** A sentence; text in backticks is code. */
export function Prose({ text }: { text: string }) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return <>{text}</>;
  return <>{parts.map((part, index) => (index % 2 ? <code key={index}><Name text={part} /></code> : part))}</>;
}

/** A name, with permission to break lines between the parts of a qualified one, or of a path, and none after the dashes of an option. */
export function Name({ text }: { text: string }) {
  const parts = text.split(/(?<=::|\/)|(?<=\s)(?=-)|(?<=(?:^|\s)-[\w-]*)(?=[\s=])/);
  return (
    <>
      {parts.map((part, index) => (
        <Fragment key={index}>
          {index > 0 && <wbr />}
          {/^-[\w-]+$/.test(part) ? <span class="option">{part}</span> : part}
        </Fragment>
      ))}
    </>
  );
}

interface Said extends DocumentNote {
  /** The captures that it is about, if several notes differ only in them. */
  about: string[];
}

/** Sentences that several captures share are shown once. A capture's label has no spaces. */
function shared(notes: DocumentNote[]): Said[] {
  const said = new Map<string, Said>();
  for (const note of notes) {
    const [, subject, sentence] = /^(\S+): (.*)$/s.exec(note.text) ?? [];
    const key = sentence ?? note.text;
    const before = said.get(key);
    if (before && subject) before.about.push(subject);
    else if (!before) said.set(key, { ...note, text: key, about: subject ? [subject] : [] });
  }
  return [...said.values()];
}

/** Notes, losses as warnings. */
export function Notes({ notes }: { notes: DocumentNote[] }) {
  if (notes.length === 0) return null;
  return (
    <ul class="notes">
      {shared(notes).map(({ kind, text, about }, index) => (
        <li key={index} class={kind}>
          {kind === "loss" && <b>Warning: </b>}
          {about.length === 1 && `${about[0]}: `}
          <Prose text={text} />
          {about.length > 1 && <span title={about.join(", ")}> ({about.length} captures)</span>}
        </li>
      ))}
    </ul>
  );
}
