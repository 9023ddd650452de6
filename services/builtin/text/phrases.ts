// The phrases of which the text model's answers are made, in its languages. `reply.ts` chooses among them.

/** Languages that the builtin model speaks. */
export type Language = "en" | "de" | "fr" | "es";

/** Its phrases, by occasion. `{name}` is filled in. Each list holds equal phrases, and one is used. */
export interface Phrases {
  opening: readonly string[];
  question: readonly string[];
  statement: readonly string[];
  wordplay: readonly string[];
  sum: string;
  turns: string;
  recalled: string;
  image: string;
  imageUnknown: string;
  imageRemote: string;
  result: string;
  offline: string;
  empty: string;
  closing: readonly string[];
}

/** Every phrase of every language. */
export const phrases: Readonly<Record<Language, Phrases>> = {
  en: {
    opening: [
      "You wrote “{topic}”, and I have given it my full attention.",
      "“{topic}” – a fine thing to bring to a model that lives inside a server.",
      "Let me take “{topic}” seriously for a moment.",
      "So it is “{topic}” today. I was hoping somebody would ask.",
    ],
    question: [
      "A larger model would know the answer; I know how the question is built, and it is built well.",
      "My honest answer is that I do not know, but I do not know it quickly and always in the same way.",
      "Ask me again and I will say exactly this again, which is more than most oracles can promise.",
    ],
    statement: [
      "I agree with every word, mostly because I counted them: {words} in all.",
      "In {words} words you have said more than I could with twice as many.",
      "I have filed it under “{longest}”, the longest of its {words} words.",
    ],
    wordplay: [
      "Read backwards, “{longest}” becomes “{reversed}”, which helps nobody but is quite true.",
      "The word I will remember is “{longest}”: {letters} letters, not one of them wasted.",
      "If it were a poem, it would surely have to end on “{longest}”.",
    ],
    sum: "Since you asked: {sum}.",
    turns: "This is turn {turn} of our conversation; it began with “{first}”.",
    recalled: "From before the compaction I still remember: {topics}.",
    image: "Image {number} is a {type} of {width} by {height} pixels.",
    imageUnknown: "Image {number} is a {type} that keeps its size to itself.",
    imageRemote: "Image {number} is behind a URL, and I never leave the house.",
    result: "The tool {name} answered: {output}",
    offline: "Searching the web will have to wait: I work without any network.",
    empty: "You sent me a pleasant silence, and I shall try not to spoil it.",
    closing: [
      "I run in the same process as your request, so the commute was short.",
      "No network was used in the making of this answer.",
      "Send me the same words and you will get the same reply: I am nothing if not consistent.",
      "When you are ready for a real model, only the catalog has to change.",
    ],
  },
  de: {
    opening: [
      "Du schreibst „{topic}“, und ich habe es mit großer Aufmerksamkeit gelesen.",
      "„{topic}“ – ein schöner Satz für ein Modell, das in einem Server wohnt.",
      "Nehmen wir „{topic}“ einen Augenblick lang ernst.",
    ],
    question: [
      "Ein größeres Modell wüsste die Antwort; ich weiß immerhin, dass die Frage gut gebaut ist.",
      "Ehrlich gesagt weiß ich es nicht, aber das weiß ich schnell und jedes Mal auf dieselbe Weise.",
    ],
    statement: [
      "Ich stimme jedem Wort zu, vor allem, weil ich sie gezählt habe: es sind {words}.",
      "Abgelegt habe ich es unter „{longest}“, dem längsten der {words} Wörter.",
    ],
    wordplay: [
      "Rückwärts gelesen wird aus „{longest}“ übrigens „{reversed}“, was niemandem hilft, aber stimmt.",
      "Merken werde ich mir „{longest}“: {letters} Buchstaben, keiner davon zu viel.",
    ],
    sum: "Weil du fragst: {sum}.",
    turns: "Das ist Runde {turn} unseres Gesprächs; begonnen hat es mit „{first}“.",
    recalled: "Aus der Zeit vor der Verdichtung erinnere ich mich an: {topics}.",
    image: "Bild {number} ist ein {type} mit {width} mal {height} Pixeln.",
    imageUnknown: "Bild {number} ist ein {type}, das seine Größe für sich behält.",
    imageRemote: "Bild {number} liegt hinter einer URL, und ich gehe nie aus dem Haus.",
    result: "Das Werkzeug {name} hat geantwortet: {output}",
    offline: "Die Suche im Netz muss warten: ich arbeite ganz ohne Netz.",
    empty: "Du schickst mir eine angenehme Stille, die ich nicht verderben möchte.",
    closing: [
      "Ich laufe im selben Prozess wie deine Anfrage, der Weg war also kurz.",
      "Schick mir dieselben Worte, und du bekommst dieselbe Antwort: auf mich ist Verlass.",
    ],
  },
  fr: {
    opening: [
      "Vous écrivez « {topic} », et je l’ai lu avec la plus grande attention.",
      "« {topic} » : voilà de quoi réjouir un modèle qui habite dans un serveur.",
    ],
    question: [
      "Un plus grand modèle aurait la réponse ; moi, je sais au moins que la question est bien faite.",
      "Franchement, je ne sais pas, mais je ne le sais pas très vite et toujours de la même façon.",
    ],
    statement: [
      "Je suis d’accord avec chaque mot, surtout parce que je les ai comptés : il y en a {words}.",
      "Je l’ai rangé sous « {longest} », le plus long de ses {words} mots.",
    ],
    wordplay: [
      "À l’envers, « {longest} » devient « {reversed} », ce qui n’aide personne mais reste exact.",
      "Le mot que je retiens est « {longest} » : {letters} lettres, pas une de trop.",
    ],
    sum: "Puisque vous le demandez : {sum}.",
    turns: "C’est le tour {turn} de notre conversation ; elle a commencé par « {first} ».",
    recalled: "D’avant le résumé, je me souviens encore de : {topics}.",
    image: "L’image {number} est un {type} de {width} sur {height} pixels.",
    imageUnknown: "L’image {number} est un {type} qui garde sa taille pour lui.",
    imageRemote: "L’image {number} est derrière une URL, et je ne sors jamais.",
    result: "L’outil {name} a répondu : {output}",
    offline: "La recherche sur le web attendra : je travaille sans aucun réseau.",
    empty: "Vous m’envoyez un silence agréable, que je tâcherai de ne pas gâcher.",
    closing: [
      "Je tourne dans le même processus que votre requête ; le trajet fut court.",
      "Envoyez-moi les mêmes mots et vous aurez la même réponse : je suis d’une constance rare.",
    ],
  },
  es: {
    opening: [
      "Escribes «{topic}», y lo he leído con toda mi atención.",
      "«{topic}»: una buena frase para un modelo que vive dentro de un servidor.",
    ],
    question: [
      "Un modelo más grande sabría la respuesta; yo al menos sé que la pregunta está bien hecha.",
      "La verdad es que no lo sé, pero no lo sé muy deprisa y siempre de la misma manera.",
    ],
    statement: [
      "Estoy de acuerdo con cada palabra, sobre todo porque las he contado: son {words}.",
      "Lo he archivado bajo «{longest}», la más larga de sus {words} palabras.",
    ],
    wordplay: [
      "Al revés, «{longest}» se convierte en «{reversed}», que no ayuda a nadie pero es cierto.",
      "La palabra que recordaré es «{longest}»: {letters} letras y ninguna de más.",
    ],
    sum: "Ya que preguntas: {sum}.",
    turns: "Este es el turno {turn} de nuestra conversación; empezó con «{first}».",
    recalled: "De antes del resumen todavía recuerdo: {topics}.",
    image: "La imagen {number} es un {type} de {width} por {height} píxeles.",
    imageUnknown: "La imagen {number} es un {type} que se guarda su tamaño.",
    imageRemote: "La imagen {number} está detrás de una URL, y yo nunca salgo de casa.",
    result: "La herramienta {name} respondió: {output}",
    offline: "La búsqueda en la web tendrá que esperar: trabajo sin red.",
    empty: "Me envías un silencio agradable que intentaré no estropear.",
    closing: [
      "Me ejecuto en el mismo proceso que tu petición, así que el viaje fue corto.",
      "Envíame las mismas palabras y tendrás la misma respuesta: soy de fiar.",
    ],
  },
};
