"""A small Qt window: a label, a history, an entry and a button. Run by Debian's own Python.

Lines on standard input change it: `add TEXT`, `many N`, `disable`, `quit`.
"""

import sys

from PyQt5 import QtCore, QtWidgets

app = QtWidgets.QApplication(sys.argv)
window = QtWidgets.QWidget()
window.setWindowTitle("Qt window 微信")
layout = QtWidgets.QVBoxLayout(window)
history = QtWidgets.QPlainTextEdit("first line\n你好 🎉")
history.setReadOnly(True)
history.setAccessibleName("history")
entry = QtWidgets.QLineEdit("draft")
entry.setAccessibleName("entry")
button = QtWidgets.QPushButton("Send")
names = QtWidgets.QListWidget()
for part in (history, entry, button, names):
    layout.addWidget(part)
window.show()


def obey() -> None:
    word, _, rest = sys.stdin.readline().rstrip("\n").partition(" ")
    if word == "add":
        history.appendPlainText(rest)
    elif word == "many":
        names.addItems([f"name {number}" for number in range(int(rest))])
    elif word == "disable":
        button.setEnabled(False)
    else:
        app.quit()


orders = QtCore.QSocketNotifier(0, QtCore.QSocketNotifier.Read)
orders.activated.connect(obey)
app.exec_()
